package server_test

import (
	"os"
	"strconv"
	"testing"
)

// soak is how many times the everyday amount of work a test does.
func soak(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("PERDURE_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
