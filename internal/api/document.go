package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// problemResponse describes the response to a request that is refused.
func problemResponse(to huma.API) *huma.Response {
	schema := to.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	return &huma.Response{
		Description: "The request was refused or failed.",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
	}
}

// documents caches the OpenAPI documents of this process by version. The document depends
// on no other field of a Config.
var documents sync.Map

// describe writes the OpenAPI document, unless another API of this process has written it.
func (a *API) describe() error {
	if written, ok := documents.Load(a.config.Version); ok {
		a.document = written.([]byte)
		return nil
	}
	all := humago.New(http.NewServeMux(), a.humaConfig())
	for _, r := range Routes {
		r.bind(a, r, all)
	}
	doc := all.OpenAPI()
	doc.Info.Description = "Durable work on SQL databases. Lists are paged by cursor, times are in UTC, durations have Go's format (1h30m), " +
		"and every POST accepts an Idempotency-Key."
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // every error is a Problem
		delete(doc.Components.Schemas.Map(), unused)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write OpenAPI document: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, "", "  "); err != nil {
		return fmt.Errorf("write OpenAPI document: %w", err)
	}
	a.document = append(indented.Bytes(), '\n')
	documents.Store(a.config.Version, a.document)
	return nil
}

// Document returns the OpenAPI document.
func (a *API) Document() []byte { return bytes.Clone(a.document) }

func (a *API) serveDocument(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(a.document) // the client may have disconnected
}
