package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The requests of the quickstart, one after the other.
func TestAGreetingOverHTTP(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "sqlite:"+filepath.Join(t.TempDir(), "hello.db"), listener, &out) }()
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if want := "the dashboard is at http://" + listener.Addr().String() + "\n"; out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
	}()
	url := "http://" + listener.Addr().String()

	var started struct{ ID string }
	call(t, http.MethodPost, url+"/v1/instances", `{"definition": "hello","state":{"language":"fr"}}`, http.StatusCreated, &started)
	call(t, http.MethodPost, url+"/v1/instances/"+started.ID+"/signals", `{"name":"name","payload":"Ada"}`, http.StatusCreated, nil)
	var done struct {
		Status string
		Result string
	}
	call(t, http.MethodGet, url+"/v1/instances/"+started.ID+"/wait?timeout=30s", "", http.StatusOK, &done)
	if done.Status != "done" || done.Result != "Bonjour, Ada!" {
		t.Errorf("it came to %+v", done)
	}
	call(t, http.MethodGet, url+"/", "", http.StatusOK, nil)
	call(t, http.MethodGet, url+"/docs/", "", http.StatusOK, nil)
}

func call(t *testing.T, method, url, body string, status int, to any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%s %s: %s: %s (%v)", method, url, response.Status, answer, err)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(answer, to); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
}
