package egress

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// hiddenError is an error of a request whose text contains no address except the host in
// the URL. errors.Is and errors.As still find the wrapped errors.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }

// hide returns an error of net/http without the URL and without addresses: the addresses
// of the host, of the resolver and of this process.
func hide(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused
	}
	text := err.Error()
	var op *net.OpError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &op):
		text = strings.ReplaceAll(text, op.Error(), op.Op+": "+hide(op.Err).Error())
	case errors.As(err, &lookup):
		text = strings.ReplaceAll(text, lookup.Error(), "look up "+lookup.Name+": "+lookup.Err)
	}
	if text == err.Error() {
		return err
	}
	return &hiddenError{text: text, err: err}
}
