package egress

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// hiddenError is an error of a request with a text that names no address but the host
// as the URL has it. The errors that it comes from can be told as before.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }

// hide returns an error of net/http without the URL and without addresses: those that
// the host resolves to, that of the resolver, and our own.
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
