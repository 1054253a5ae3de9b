// Polyglot runs an order whose steps are written in Python: a charge that fails once, a
// payment that the order waits for, and concurrent parcels.
//
// It starts order.py, stores the definitions of its state machines, and runs one order on a
// database in memory. The Python program is stopped and restarted in between, which does
// not affect the order.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/retry"
)

func main() {
	if err := run(context.Background(), "examples/polyglot", os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run runs an order. directory contains order.py.
func run(ctx context.Context, directory string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	machines, err := fsm.New(eng, nil)
	if err != nil {
		return err
	}
	// The endpoint is on this host, which must be allowed.
	registry, err := remote.New(eng, machines, &remote.Options{Allow: []string{"127.0.0.1"}})
	if err != nil {
		return err
	}
	registry.Start()
	defer registry.Close()
	worker, err := dispatch.NewWaker(machines, nil)
	if err != nil {
		return err
	}
	worker.Start()
	defer func() { err = errors.Join(err, worker.Stop(context.WithoutCancel(ctx))) }()
	return takeOrder(ctx, registry, eng, machines, directory, out)
}

// takeOrder starts an order, pays it, and waits until it is finished.
func takeOrder(ctx context.Context, registry *remote.Registry, eng *perdure.Engine, machines *fsm.Machines, directory string, out io.Writer) error {
	secret := newSecret()
	python, url, err := startPython(ctx, directory, secret)
	if err != nil {
		return err
	}
	if err := define(ctx, registry, url, secret); err != nil {
		return errors.Join(err, stop(python))
	}
	order := json.RawMessage(`{"items": ["lamp", "desk"]}`)
	started, err := machines.StartNamed(ctx, "order", 1, order, nil)
	if err != nil {
		return errors.Join(err, stop(python))
	}
	if err := await(ctx, machines, started.ID, out, fsm.Waiting); err != nil {
		return errors.Join(err, stop(python))
	}
	// While the order waits, its program may stop, start and change its address.
	if err := stop(python); err != nil {
		return err
	}
	if _, err := fsm.Send(ctx, eng, started.ID, "paid", map[string]int{"amount": 4200}, nil); err != nil {
		return err
	}
	if python, url, err = startPython(ctx, directory, secret); err != nil {
		return err
	}
	return errors.Join(define(ctx, registry, url, secret), await(ctx, machines, started.ID, out, fsm.Done), stop(python))
}

// define stores the definitions. The same call with another URL moves them.
func define(ctx context.Context, registry *remote.Registry, url, secret string) error {
	again := retry.Fixed(50, 20*time.Millisecond) // the program may be unavailable for a short time
	for name, steps := range map[string][]remote.Step{
		"order":  {{Name: "charge"}, {Name: "pack"}, {Name: "close"}},
		"parcel": {{Name: "wrap", Timeout: 10 * time.Second}},
	} {
		_, err := registry.Put(ctx, remote.Definition{Name: name, Version: 1, URL: url, Steps: steps, Retry: again, Secrets: []string{secret}})
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until the order has a status, and prints it.
func await(ctx context.Context, machines *fsm.Machines, id string, out io.Writer, status fsm.Status) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		i, err := machines.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case i.Status == status:
			_, err := fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%s: %s %s", i.Step, i.Status, i.Result)))
			return err
		case i.Status == fsm.Failed:
			return errors.New(i.Error)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startPython starts the program and returns its address, which the program prints.
func startPython(ctx context.Context, directory, secret string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, "python3", filepath.Join(directory, "order.py"))
	cmd.Env = append(os.Environ(), "ORDER_SECRETS="+secret)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, "", errors.Join(err, stop(cmd))
	}
	return cmd, strings.TrimSpace(url), nil
}

func stop(cmd *exec.Cmd) error {
	err := cmd.Process.Kill()
	_ = cmd.Wait() // it was killed, so an error is expected
	return err
}

// newSecret returns a secret that both sides share.
func newSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(secret)
}
