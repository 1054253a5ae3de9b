package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Time is a time in UTC with milliseconds. Zero times are left out.
type Time time.Time

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format(timeLayout))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, (*time.Time)(t)) }

// IsZero lets encoding/json omit the field.
func (t Time) IsZero() bool { return time.Time(t).IsZero() }

// Schema implements huma.SchemaProvider.
func (Time) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-01-31T09:30:00.000Z"}}
}

// Duration is a duration in Go's notation: 1h30m.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("must be a duration such as 1h30m, got %q", text)
	}
	*d = Duration(parsed)
	return nil
}

// Schema implements huma.SchemaProvider.
func (Duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"1h30m"}, Description: "Duration, for example 250ms, 90s or 1h30m."}
}

// Priority is the urgency of due work.
type Priority int

var priorities = map[string]Priority{"high": -1, "normal": 0, "low": 1}

// MarshalJSON implements json.Marshaler.
func (p Priority) MarshalJSON() ([]byte, error) {
	for name, priority := range priorities {
		if p == priority {
			return json.Marshal(name)
		}
	}
	return json.Marshal(fmt.Sprint(int(p)))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Priority) UnmarshalJSON(raw []byte) error {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return err
	}
	priority, ok := priorities[name]
	if !ok {
		return fmt.Errorf("must be one of high, normal, low, got %q", name)
	}
	*p = priority
	return nil
}

// Schema implements huma.SchemaProvider.
func (Priority) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"high", "normal", "low"}}
}

// Paging is the input that all lists share.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Maximum number of rows to return."`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the previous page. Default: the first page."`
}

// Page is one page of a list.
type Page[T any] struct {
	Data []T `json:"data" nullable:"false"`
	// NextCursor is null after the last page.
	NextCursor *string `json:"next_cursor" required:"true" doc:"Cursor of the next page; null on the last page. A page can have fewer rows than the limit and still not be the last one."`
	Count      *Count  `json:"count,omitempty" doc:"Number of rows, with count=true."`
}

// Count is a number that is counted only up to a cap.
type Count struct {
	Count  int  `json:"count"`
	Capped bool `json:"capped" doc:"True if there are more."`
}

// List is the response of a list.
type List[T any] struct {
	Link string `header:"Link" doc:"Link to the next page (RFC 8288)."`
	Body Page[T]
}

// page returns one page of rows, converted by show.
func page[R, T any](req *request, rows []R, next string, show func(R) T) *List[T] {
	out := &List[T]{Body: Page[T]{Data: make([]T, len(rows))}}
	for i, row := range rows {
		out.Body.Data[i] = show(row)
	}
	if next != "" {
		out.Body.NextCursor = &next
		query := req.url.Query()
		query.Set("cursor", next)
		out.Link = "<?" + query.Encode() + `>; rel="next"`
	}
	return out
}

// timeOf returns the time.
func timeOf(t Time) time.Time { return time.Time(t) }

// One is a response with one resource.
type One[T any] struct{ Body T }

func one[T any](v T) *One[T] { return &One[T]{Body: v} }

// ByID is the input of a route for one resource.
type ByID struct {
	ID string `path:"id" maxLength:"128"`
}
