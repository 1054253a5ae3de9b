package edge

import (
	"strconv"

	"github.com/perdure/perdure/fault"
)

// number reads a number and rejects it if some database would change it.
func (s *scanner) number() error {
	start := s.pos
	exponent, err := s.grammar()
	if err != nil {
		return err
	}
	literal := s.raw[start:s.pos]
	if len(literal) > MaxNumber || exponent > 3 {
		return fault.Invalidf(s.field, "must not have a number that is too long, at byte %d", start)
	}
	if literal[0] == '-' && zero(literal) {
		return s.negativeZero(start)
	}
	if len(literal) <= 200 && exponent <= 2 {
		return nil // 200 digits and a two-digit exponent are far within 1e±308
	}
	return s.magnitude(start, literal)
}

// grammar reads a number and returns the number of digits of its exponent.
func (s *scanner) grammar() (exponent int, err error) {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if s.digits() == 0 {
		return 0, s.fail("expected a digit")
	}
	if s.peek() == '.' {
		s.pos++
		if s.digits() == 0 {
			return 0, s.fail("expected a digit")
		}
	}
	if c := s.peek(); c != 'e' && c != 'E' {
		return 0, nil
	}
	return s.exponent()
}

func (s *scanner) exponent() (digits int, err error) {
	s.pos++
	if c := s.peek(); c == '+' || c == '-' {
		s.pos++
	}
	if digits = s.digits(); digits == 0 {
		return 0, s.fail("expected a digit")
	}
	return digits, nil
}

func (s *scanner) digits() int {
	start := s.pos
	for digit(s.peek()) {
		s.pos++
	}
	return s.pos - start
}

// zero reports whether all digits of the number are 0. The exponent does not count.
func zero(literal []byte) bool {
	for _, c := range literal {
		if c == 'e' || c == 'E' {
			break
		}
		if '1' <= c && c <= '9' {
			return false
		}
	}
	return true
}

func (s *scanner) negativeZero(at int) error {
	if !s.collectZeros {
		return fault.Invalidf(s.field, "must not have a negative zero, at byte %d", at)
	}
	s.zeros = append(s.zeros, at)
	return nil
}

func (s *scanner) magnitude(at int, literal []byte) error {
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return fault.Invalidf(s.field, "must not have a number that is too large, at byte %d", at)
	}
	if f == 0 && !zero(literal) {
		return fault.Invalidf(s.field, "must not have a number that is too small, at byte %d", at)
	}
	return nil
}
