package api

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/edge"
)

// bodyPatience is the time limit for a client to send the body of a request.
const bodyPatience = 5 * time.Second

// checkInput refuses a request that no handler can use. Databases refuse or change some
// text (NUL, invalid UTF-8): it must not be in the path, the query or the headers of the
// operation. A body must not end early or be malformed. checkInput reads the body itself,
// because huma would respond with 500 to an error. The JSON in the body is checked by
// unmarshal.
func (a *API) checkInput(w http.ResponseWriter, r *http.Request, op *huma.Operation) error {
	if err := edge.Text("path", r.URL.Path, math.MaxInt); err != nil {
		return err
	}
	if err := checkQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if err := checkStatuses(r.URL.Query()["status"], op); err != nil {
		return err
	}
	for _, p := range op.Parameters {
		if p.In != "header" {
			continue
		}
		for _, value := range r.Header.Values(p.Name) {
			if err := edge.Text("header."+p.Name, value, math.MaxInt); err != nil {
				return err
			}
		}
	}
	if op.RequestBody == nil {
		return nil
	}
	return a.readBody(w, r)
}

// checkQuery refuses a query that cannot be parsed. Go's parser would leave out its broken
// parts.
func checkQuery(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return fault.Invalidf("query", "must be a valid query string")
	}
	for name, all := range values {
		if err := edge.Text("query", name, math.MaxInt); err != nil {
			return err
		}
		for _, value := range all {
			if err := edge.Text("query."+name, value, math.MaxInt); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBody reads the body of a request into memory. Its length is bounded already.
func (a *API) readBody(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(clock.System.Now().Add(bodyPatience)) // fails if the connection has no deadlines
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), a.config.MaxBody)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(&body)
		return nil
	}
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.As(err, &timeout) && timeout.Timeout():
		return NewProblem(http.StatusRequestTimeout, codeUnavailable, "the body was not received in time")
	}
	return NewProblem(http.StatusBadRequest, codeInvalid, "the body is incomplete, or its chunks are malformed")
}
