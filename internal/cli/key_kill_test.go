package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// rotated is a database with values that are encrypted again.
type rotated struct {
	*testing.T
	db   enginetest.Database
	keys []string // newest first
}

const rotatedValues, rotatedPlain = 900, 100

// newRotated stores values that are encrypted with a key, and some that are not.
func newRotated(t *testing.T, name string) *rotated {
	t.Helper()
	r := &rotated{T: t, db: enginetest.New(t, name)}
	for _, id := range []string{"new", "old"} {
		r.keys = append(r.keys, strings.TrimSpace(run(t, "key", "generate", id).stdout))
	}
	old, err := perdure.ParseKeys(r.keys[1])
	enginetest.NoError(t, err)
	for ring, n := range map[*perdure.Keys]int{nil: rotatedPlain, old: rotatedValues} {
		eng, err := perdure.Open(t.Context(), r.db.DSN, &perdure.Options{Keys: ring})
		enginetest.NoError(t, err)
		hooks, err := hook.New(eng, "app", nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
			for i := range n {
				if _, err := hooks.TriggerIn(tx, "mail", fmt.Sprint("planted-", i), nil); err != nil {
					return err
				}
			}
			return nil
		}))
		enginetest.NoError(t, eng.Close())
	}
	return r
}

func (r *rotated) variable() string { return encryptionKeys + "=" + strings.Join(r.keys, ",") }

// kill rotates in a process of its own that is killed at a failpoint.
func (r *rotated) kill(point string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), os.Args[0], "key", "rotate", "--reason", "because it leaked", "--dsn", r.db.DSN)
	cmd.Env = append(os.Environ(), childVariable+"=1", r.variable(), failpoint.Variable+"="+point)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		r.Fatalf("%s: it was not killed: %v, %s", point, err, out)
	}
}

// check compares the entries with the values that have the new key, and returns how many
// there are.
func (r *rotated) check() (encrypted int64) {
	r.Helper()
	payload := "payload"
	if r.db.Name == enginetest.Postgres {
		payload = "payload::text"
	}
	has := func(key string) int64 {
		return r.db.Int(r.T, "select count(*) from "+r.db.Table("perdure", "hooks")+" where "+payload+` like '%"`+key+`"%'`)
	}
	listed := run(r.T, "audit", "list", "--action", "key rotate", "--limit", "1000", "--json", "--dsn", r.db.DSN)
	before := map[string]int64{}
	for _, raw := range listed.decode(r.T)["data"].([]any) {
		e := raw.(map[string]any)
		if e["kind"] != "key" || e["target"] != "new" || e["reason"] != "because it leaked" || e["via"] != "cli" || !strings.HasPrefix(e["principal"].(string), "os:") || e["address"] == "" {
			r.Errorf("%s: an entry is %v", r.db.Name, e)
		}
		was, is := states(r.T, e["before"]), states(r.T, e["after"])
		var n int64
		for key, count := range was.Keys {
			before[key] += count
			n += count
		}
		if was.Column != "hooks.payload" || is.Column != was.Column || n == 0 || is.Keys["new"] != n || len(is.Keys) != 1 || is.Total < n {
			r.Errorf("%s: an entry has %+v before and %+v after", r.db.Name, was, is)
		}
		encrypted += n
	}
	if n := has("new"); n != encrypted {
		r.Errorf("%s: %d values were encrypted again, but entries have %d", r.db.Name, n, encrypted)
	}
	if n := has("old"); n != rotatedValues-before["old"] {
		r.Errorf("%s: %d values have the old key, and entries of %d", r.db.Name, n, before["old"])
	}
	if encrypted != before["old"]+before[rotate.Plain] {
		r.Errorf("%s: %v", r.db.Name, before)
	}
	for _, secret := range []string{"planted", "$sealed", strings.TrimPrefix(r.keys[0], "new:"), strings.TrimPrefix(r.keys[1], "old:")} {
		if strings.Contains(listed.stdout, secret) {
			r.Errorf("%s: the audit log has %s", r.db.Name, secret)
		}
	}
	return encrypted
}

func states(t *testing.T, v any) (s rotate.Encrypted) {
	t.Helper()
	raw, err := json.Marshal(v)
	enginetest.NoError(t, err)
	enginetest.NoError(t, json.Unmarshal(raw, &s))
	return s
}

// A rotation that is killed, before or after any of its commits, has entries for exactly
// the values that it has encrypted again. Running it again does the rest.
func TestAKilledRotationHasEntriesOfWhatItDid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotated(t, name)
			done := r.check()
			for _, kill := range []struct {
				point string
				more  int64
			}{
				{"rotate.recorded:1", 0}, {"rotate.batch:1", 200}, {"rotate.recorded:2", 200}, {"rotate.recorded:3", 400},
			} {
				r.kill(kill.point)
				if now := r.check(); now != done+kill.more {
					t.Errorf("%s: %d values after %d", kill.point, now, done)
				} else {
					done = now
				}
			}
			runWith(t, []string{r.variable()}, "key", "rotate", "--reason", "because it leaked", "--dsn", r.db.DSN).want(t, 0)
			if now := r.check(); now != rotatedValues+rotatedPlain {
				t.Errorf("%d values in the end", now)
			}
			// Nothing is left to do, so nothing is written.
			entries := r.db.Rows(t, "perdure", "audit")
			runWith(t, []string{r.variable()}, "key", "rotate", "--dsn", r.db.DSN).want(t, 0)
			if n := r.db.Rows(t, "perdure", "audit"); n != entries {
				t.Errorf("%d entries of a rotation that has changed nothing", n-entries)
			}
			report, err := doctor.VerifyAudit(t.Context(), r.db.Open(t, nil))
			enginetest.NoError(t, err)
			if len(report.Problems) > 0 {
				t.Error(report.Problems)
			}
		})
	}
}
