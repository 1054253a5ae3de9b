package egress

import (
	"fmt"
	"io"
)

// TooLargeError reports that a response is larger than the limit.
type TooLargeError struct{ Max int64 }

func (e *TooLargeError) Error() string { return fmt.Sprintf("response is longer than %d bytes", e.Max) }

// capped is a body that returns an error instead of more than max bytes.
type capped struct {
	body      io.ReadCloser
	left, max int64
}

func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.body.Read(p)
	if err != nil && err != io.EOF {
		err = hide(err)
	}
	if int64(n) > c.left {
		n, err = int(c.left), &TooLargeError{Max: c.max}
	}
	c.left -= int64(n)
	return n, err
}

func (c *capped) Close() error { return c.body.Close() }
