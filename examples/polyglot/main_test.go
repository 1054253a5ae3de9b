package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

func TestAnOrderInPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("PERDURE_REQUIRE_SERVERS") != "1" {
			t.Skip("python3 is not installed")
		}
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), ".", &out); err != nil {
		t.Fatal(err)
	}
	want := "pack: waiting\nclose: done {\"paid\":4200,\"packed\":[\"LAMP\",\"DESK\"],\"attempts\":2}\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
