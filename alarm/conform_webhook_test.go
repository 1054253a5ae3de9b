package alarm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// Addresses that no process can reach, and addresses that only some may reach.
var (
	impossible = []string{"ftp://example.org/", "https:///x", "http://user:secret@example.org/", "http://0x7f.1/", "http://2130706433/", "http://example.org:99999/", "http://[fe80::1%25eth0]/"}
	internal   = []string{"http://127.0.0.1/", "http://10.1.2.3/", "http://169.254.169.254/", "http://[::1]/", "http://[fd00:ec2::254]/"}
)

// An address is checked when it is stored, as far as the process knows what can be
// reached.
func (Conformance) AddressesOfWebhooksAreCheckedWhenTheyAreStored(t *testing.T, db enginetest.Database) {
	public, err := alarm.NewSender(secret, nil)
	enginetest.NoError(t, err)
	allowing, err := alarm.NewSender(secret, &alarm.SenderOptions{Allow: []string{"127.0.0.1", "10.0.0.0/8", "169.254.169.254", "::1", "fd00:ec2::254"}})
	enginetest.NoError(t, err)
	for name, c := range map[string]struct {
		sender          alarm.Sender
		refusesInternal bool
	}{"without a sender": {nil, false}, "for public addresses": {public, true}, "for some internal addresses": {allowing, false}} {
		f := newFixture(t, db, &alarm.Options{Sender: c.sender})
		try := func(url string) error {
			return f.alarms.Schedule(enginetest.Context(t), alarm.Of("a", name, "x"), alarm.Webhook, nil, &alarm.ScheduleOptions{Webhook: url, Delay: time.Hour})
		}
		for _, url := range impossible {
			if enginetest.As[*fault.Invalid](t, try(url)); strings.Contains(try(url).Error(), "secret") {
				t.Errorf("%s: %s is quoted", name, url)
			}
			_, err := alarm.New(f.eng, &alarm.Options{Sender: c.sender, Notify: url})
			enginetest.As[*fault.Invalid](t, err)
		}
		for _, url := range internal {
			err := try(url)
			_, broken := alarm.New(f.eng, &alarm.Options{Sender: c.sender, Notify: url})
			if refused := err != nil; refused != c.refusesInternal || refused != (broken != nil) {
				t.Errorf("%s: %s: %v, %v", name, url, err, broken)
			}
			if c.refusesInternal {
				enginetest.As[*fault.Invalid](t, err)
			}
		}
		enginetest.NoError(t, try("https://hooks.example.org/x?y=z"))
	}
}

// An address that was stored although it is not allowed is tried once.
func (Conformance) AnAddressThatIsNotAllowedFailsAtOnce(t *testing.T, db enginetest.Database) {
	send, err := alarm.NewSender(secret, nil)
	enginetest.NoError(t, err)
	f := newFixture(t, db, &alarm.Options{Sender: send, Retry: retry.Fixed(8, time.Second)})
	unaware := newAlarms(t, f.eng, nil)
	for i, url := range internal {
		key := alarm.Of("a", string(rune('a'+i)), "x")
		enginetest.NoError(t, unaware.Schedule(enginetest.Context(t), key, alarm.Webhook, nil, &alarm.ScheduleOptions{Webhook: url}))
		f.process(t, 1)
		r := f.is(t, key, alarm.Failed)
		equal(t, "attempts", r.Attempts, 1)
		if !strings.Contains(r.Error, "is not in the list of allowed addresses") {
			t.Errorf("%s: %s", url, r.Error)
		}
	}
}
