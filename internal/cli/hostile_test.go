package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// doubling assigns s + s and raises itself. Without limits one event uses all memory.
const doubling = `{"context": {"s": "x"}, "on": {"E": {"actions": [
	{"type": "xstate.assign", "params": {"assignment": {"s": {"$expr": "context.s + context.s"}}}},
	{"type": "xstate.raise", "params": {"event": {"type": "E"}}}]}}}`

const flipping = `{"initial": "off", "states": {"off": {"on": {"FLIP": "on"}}, "on": {"on": {"FLIP": "off"}}}}`

// maxResident is the memory that a server may use, in KiB.
const maxResident = 512 << 10

func TestAHostileMachineTakesNoServerDown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := join(t, "serve", "--dsn", databases()[name](t))
			m.request(http.MethodPut, "/v1/statecharts/hostile", `{"definition": `+doubling+`}`, http.StatusOK)
			m.request(http.MethodPut, "/v1/statecharts/lamp", `{"definition": `+flipping+`}`, http.StatusOK)
			m.request(http.MethodPost, "/v1/actors", `{"type": "lamp", "id": "1"}`, http.StatusCreated)
			var clients sync.WaitGroup
			for c := range 8 {
				clients.Go(func() { m.attack(c, 10*enginetest.Soak()) })
			}
			for range 50 * enginetest.Soak() { // none of them fails
				m.request(http.MethodPost, "/v1/actors/lamp/1/events", `{"type": "FLIP"}`, http.StatusOK)
			}
			clients.Wait()
			var shown struct{ Status, Error string }
			enginetest.NoError(t, json.Unmarshal([]byte(m.request(http.MethodGet, "/v1/actors/hostile/0-0", "", http.StatusOK)), &shown))
			if shown.Status != "error" || !strings.Contains(shown.Error, "exceeds the limit of a context") {
				t.Errorf("the hostile actor is %+v", shown)
			}
			if used := m.resident(); used > maxResident {
				t.Errorf("the server used %d MiB", used>>10)
			}
		})
	}
}

// BenchmarkOthersWhileAMachineIsHostile measures the events of other actors while 8
// clients send hostile events.
func BenchmarkOthersWhileAMachineIsHostile(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			m := join(b, "serve", "--dsn", databases()[name](b))
			m.request(http.MethodPut, "/v1/statecharts/hostile", `{"definition": `+doubling+`}`, http.StatusOK)
			m.request(http.MethodPut, "/v1/statecharts/lamp", `{"definition": `+flipping+`}`, http.StatusOK)
			m.request(http.MethodPost, "/v1/actors", `{"type": "lamp", "id": "1"}`, http.StatusCreated)
			var clients sync.WaitGroup
			over := make(chan struct{})
			for c := range 8 {
				clients.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-over:
							return
						default:
							m.attack(c*1_000_000+i, 1)
						}
					}
				})
			}
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				m.request(http.MethodPost, "/v1/actors/lamp/1/events", `{"type": "FLIP"}`, http.StatusOK)
				took = append(took, time.Since(began))
			}
			close(over)
			clients.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(m.resident()>>10), "peak-MiB")
		})
	}
}

// attack sends the hostile event to new actors.
func (m *member) attack(client, times int) {
	for i := range times {
		id := fmt.Sprintf("%d-%d", client, i)
		m.request(http.MethodPost, "/v1/actors", `{"type": "hostile", "id": "`+id+`"}`, http.StatusCreated)
		path := "/v1/actors/hostile/" + id + "/events"
		answer := m.request(http.MethodPost, path, `{"type": "E"}`, http.StatusUnprocessableEntity)
		if !strings.Contains(answer, `"limit_exceeded"`) {
			m.t.Errorf("problem is %s", answer)
		}
		m.request(http.MethodPost, path, `{"type": "E"}`, http.StatusOK) // it has failed: the event is dropped
	}
}

// request sends a request and returns the body of its answer.
func (m *member) request(method, path, body string, status int) string {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), method, m.url+path, strings.NewReader(body))
	if err != nil {
		m.t.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		m.t.Errorf("%s %s: %d %.300s, %v", method, path, answer.StatusCode, raw, err)
	}
	return string(raw)
}

// resident returns the largest resident memory of the process so far, in KiB.
func (m *member) resident() int {
	m.t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	enginetest.NoError(m.t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			enginetest.NoError(m.t, err)
			m.t.Logf("peak: %d MiB", n>>10)
			return n
		}
	}
	m.t.Fatal("no VmHWM")
	return 0
}
