package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/server"
)

// A program mounts the server under a prefix of its own, and other programs start
// its state machines over HTTP.
func Example() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	greeter := fsm.Define("greeter", 1, nil, fsm.Step("greet", func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
		return run.Done("Hello " + run.State), nil
	}, nil))
	srv, err := server.New(eng, &server.Options{Definitions: []fsm.Definer{greeter}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Stop(ctx) }()
	mux := http.NewServeMux()
	mux.Handle("/perdure/", http.StripPrefix("/perdure", srv))
	front := httptest.NewServer(mux)
	defer front.Close()

	res, err := http.Post(front.URL+"/perdure/v1/instances", "application/json", strings.NewReader(`{
		"definition": "greeter", "state": "Ada", "id": "0198c5d2-0000-7000-8000-000000000001"
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = res.Body.Close()
	fmt.Println(res.Status)
	res, err = http.Get(front.URL + "/perdure/v1/instances/0198c5d2-0000-7000-8000-000000000001/wait")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	fmt.Println(strings.Contains(string(body), `"result":"Hello Ada"`))
	// Output:
	// 201 Created
	// true
}
