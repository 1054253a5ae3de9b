// Hello is a custom state machine with the dashboard: the program of the quickstart. It
// asks for a name, waits for it up to a day, and greets.
//
//	go run ./examples/hello
//
// It stores its data in hello.db. It can be stopped and restarted while a greeting waits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/server"
	"github.com/perdure/perdure/ui"
)

func main() {
	address := flag.String("listen", "127.0.0.1:7071", "the address to serve")
	flag.Parse()
	if err := listen(*address); err != nil {
		log.Fatal(err)
	}
}

// listen serves on an address until Ctrl-C.
func listen(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return run(ctx, "sqlite:hello.db", listener, os.Stdout)
}

// Greeting is the state of a greeting. It is stored after every step.
type Greeting struct {
	Language string `json:"language"`
	Name     string `json:"name,omitempty"`
}

// Hello is the definition. An instance starts with the first step.
var Hello = fsm.Define("hello", 1, &fsm.DefinitionOptions[Greeting]{KeepHistory: true},
	fsm.Step("ask", ask, nil),
	fsm.Step("greet", greet, nil),
)

// ask waits for a signal with the name. While the instance waits, it is only a row in the
// database.
func ask(_ context.Context, run *fsm.Run[Greeting]) (fsm.Outcome, error) {
	return run.Await("name").Then("greet").Within(24 * time.Hour), nil
}

// greet runs when the name has arrived, or after a day.
func greet(_ context.Context, run *fsm.Run[Greeting]) (fsm.Outcome, error) {
	if run.TimedOut {
		return run.Stop("no name was given"), nil
	}
	if err := run.Awaited[0].Decode(&run.State.Name); err != nil {
		return fsm.Outcome{}, err
	}
	word := map[string]string{"de": "Guten Tag", "fr": "Bonjour"}[run.State.Language]
	if word == "" {
		word = "Hello"
	}
	return run.Done(word + ", " + run.State.Name + "!"), nil
}

// run serves the API and the dashboard, and runs due work, until ctx is done.
func run(ctx context.Context, database string, listener net.Listener, out io.Writer) error {
	eng, err := perdure.Open(ctx, database, nil)
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	dashboard, err := ui.Handler(nil)
	if err != nil {
		return err
	}
	srv, err := server.New(eng, &server.Options{Definitions: []fsm.Definer{Hello}, Dashboard: dashboard})
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "the dashboard is at http://%s\n", listener.Addr())
	return serve(ctx, srv, listener)
}

// serve serves requests until ctx is done, and then waits for running work.
func serve(ctx context.Context, srv *server.Server, listener net.Listener) error {
	web := srv.HTTP()
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return srv.Stop(last)
}
