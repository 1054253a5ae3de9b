package edge

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/fault"
)

// MaxInteger and MaxFraction are the maximum numbers of digits of a decimal before and after
// the point. Every database stores such a number exactly: MySQL has decimal(65,30).
const (
	MaxInteger  = 35
	MaxFraction = 30
)

// maxDecimalText is the longest text of a decimal in bytes. It leaves room for zeros that do
// not count.
const maxDecimalText = 256

// Decimal returns the one form of a decimal number: an optional minus, digits without leading
// zeros, and, if there is a fraction, a point and digits without trailing zeros. Zero has no
// sign. It accepts a sign, leading and trailing zeros, and an exponent. It never rounds: a
// number with too many digits is rejected.
func Decimal(field, text string) (string, error) {
	if len(text) > maxDecimalText {
		return "", fault.Invalidf(field, "must be at most %d bytes", maxDecimalText)
	}
	negative, rest := strings.HasPrefix(text, "-"), strings.TrimLeft(text, "+-")
	if len(text)-len(rest) > 1 {
		return "", notDecimal(field)
	}
	mantissa, exponent, err := splitExponent(field, rest)
	if err != nil {
		return "", err
	}
	integer, fraction, point := strings.Cut(mantissa, ".")
	if integer == "" || point && fraction == "" || !allDigits(integer) || !allDigits(fraction) {
		return "", notDecimal(field)
	}
	integer, fraction = shift(integer, fraction, exponent)
	if len(integer) > MaxInteger || len(fraction) > MaxFraction {
		return "", fault.Invalidf(field, "must have at most %d digits before the decimal point and %d after it", MaxInteger, MaxFraction)
	}
	return join(negative, integer, fraction), nil
}

func join(negative bool, integer, fraction string) string {
	if integer == "" {
		integer = "0"
	}
	text := integer
	if fraction != "" {
		text += "." + fraction
	}
	if negative && text != "0" {
		text = "-" + text
	}
	return text
}

// splitExponent splits 12e3 into 12 and 3.
func splitExponent(field, text string) (mantissa string, exponent int, err error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, nil
	}
	exponent, err = strconv.Atoi(text[at+1:])
	if err != nil {
		return "", 0, notDecimal(field)
	}
	if exponent < -maxDecimalText || exponent > maxDecimalText { // not even zeros make up for it
		return "", 0, fault.Invalidf(field, "must have an exponent between -%d and %d", maxDecimalText, maxDecimalText)
	}
	return text[:at], exponent, nil
}

// shift moves the point by an exponent, and removes the zeros that do not count.
func shift(integer, fraction string, exponent int) (string, string) {
	digits, point := integer+fraction, len(integer)+exponent
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	return strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
}

func allDigits(s string) bool {
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
	}
	return true
}

func notDecimal(field string) error {
	return fault.Invalidf(field, "must be a decimal number, such as 12.50")
}
