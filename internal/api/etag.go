package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
)

// Reading is the input of a GET of something with an ETag.
type Reading struct {
	IfNoneMatch string `header:"If-None-Match" doc:"Comma-separated ETags. The response is 304 without a body if one of them matches the stored resource."`
}

// Changing is the input of a PATCH or a DELETE of something with an ETag.
type Changing struct {
	IfMatch string `header:"If-Match" doc:"Comma-separated ETags, or *. If none of them matches the stored resource, nothing changes and the response is 412."`
}

// Replacing is the input of a PUT of something with an ETag.
type Replacing struct {
	Changing
	IfNoneMatch string `header:"If-None-Match" doc:"* creates the resource only if it does not exist. Otherwise nothing changes and the response is 412."`
}

// Tagged is a response with one resource and its ETag.
type Tagged[T any] struct {
	Status int
	ETag   string `header:"ETag" doc:"ETag of the stored resource, for If-Match and If-None-Match."`
	Body   T
}

func tagged[T any](v T, etag string) *Tagged[T] {
	return &Tagged[T]{Status: http.StatusOK, ETag: etag, Body: v}
}

// hasTag marks responses with an ETag.
func (*Tagged[T]) hasTag() {}

// unlessKnown leaves the resource out of the response if the client already has it.
func (t *Tagged[T]) unlessKnown(in Reading) (*Tagged[T], error) {
	known, err := parseTags("If-None-Match", in.IfNoneMatch)
	if err == nil && known.have(t.ETag, true) {
		t.Status = http.StatusNotModified
	}
	return t, err
}

// etagOf returns the ETag of a configuration. Equal configurations have the same ETag in
// every process.
func etagOf(parts ...any) (string, error) {
	raw, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("compute ETag: %w", err)
	}
	sum := sha256.Sum256(raw)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`, nil
}

// allow returns an error unless the client's conditions permit a change of a resource with
// this ETag. The ETag is "" if the resource does not exist. The caller must check it in the
// transaction of the change, after the resource is locked.
func (in Changing) allow(etag string) error {
	wanted, err := parseTags("If-Match", in.IfMatch)
	if err != nil || in.IfMatch == "" || wanted.have(etag, false) {
		return err
	}
	return NewProblem(http.StatusPreconditionFailed, codePrecondition, "the resource does not match If-Match: read it again")
}

// allow is like Changing.allow, and also checks If-None-Match.
func (in Replacing) allow(etag string) error {
	if err := in.Changing.allow(etag); err != nil {
		return err
	}
	unwanted, err := parseTags("If-None-Match", in.IfNoneMatch)
	if err == nil && unwanted.have(etag, true) {
		err = NewProblem(http.StatusPreconditionFailed, codePrecondition, "the resource already exists, which If-None-Match forbids")
	}
	return err
}

// allow checks a condition on a resource with the ETag that tag returns. The resource is
// nil if it does not exist.
func allow[T any](in interface{ allow(etag string) error }, thing *T, tag func(*T) (string, error)) error {
	if thing == nil {
		return in.allow("")
	}
	etag, err := tag(thing)
	if err != nil {
		return err
	}
	return in.allow(etag)
}

// tags are the ETags of a header field.
type tags struct {
	any  bool // *
	list []string
}

// have reports whether an ETag is among the tags. "" represents a missing resource and is
// never among them. The weak comparison takes W/"x" for "x" (RFC 9110, section 8.8.3.2).
func (t tags) have(etag string, weak bool) bool {
	if etag == "" {
		return false
	}
	return t.any || slices.Contains(t.list, etag) || weak && slices.Contains(t.list, "W/"+etag)
}

// parseTags parses a header field: empty, * or comma-separated ETags. An ETag may contain
// commas.
func parseTags(field, text string) (tags, error) {
	var t tags
	if t.any = strings.TrimSpace(text) == "*"; t.any {
		return t, nil
	}
	for rest := strings.Trim(text, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		opaque, weak := strings.CutPrefix(rest, "W/")
		end := strings.IndexByte(strings.TrimPrefix(opaque, `"`), '"') + 2
		if !strings.HasPrefix(opaque, `"`) || end < 2 || len(opaque) > end && !strings.ContainsRune(" \t,", rune(opaque[end])) {
			return tags{}, fault.Invalidf("header."+field, "must be * or a comma-separated list of ETags in double quotes")
		}
		tag := opaque[:end]
		if rest = opaque[end:]; weak {
			tag = "W/" + tag
		}
		t.list = append(t.list, tag)
	}
	return t, nil
}
