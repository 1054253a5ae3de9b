package unit

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

// draft is the payload of an outbox entry whose stamp is not known yet. The goroutine of
// the unit encodes it before the reservation, because every other writer waits while the
// counter is locked.
//
// In place of the stamp it contains a random nonce, once for each mutation and event, and
// nowhere else.
type draft struct {
	payload string
	nonce   string // hexadecimal, without the user version
}

// nonceLen is the length of a hexadecimal stamp without its user version.
const nonceLen = 20

// prepare encodes the draft of the unit's entry, unless it was encoded before.
func (u *Unit) prepare() error {
	for u.draft == nil {
		nonce := outbox.NewStamp(uint16(rand.Uint32()), rand.Uint64(), 0)
		for i, m := range u.Mutations {
			u.Mutations[i].Stamp = nonce.At(m.Stamp.User())
		}
		for i, e := range u.Events {
			u.Events[i].Stamp = nonce.At(e.Stamp.User())
		}
		payload, err := outbox.Encode(outbox.Payload{Version: outbox.PayloadVersion, Mutations: u.Mutations, Events: u.Events})
		if err != nil {
			return fmt.Errorf("encode outbox payload: %w", err)
		}
		if len(payload) > maxPayload {
			return fault.Invalidf("unit of work", "must have an outbox payload of at most %d bytes, got %d", maxPayload, len(payload))
		}
		d := draft{payload: string(payload), nonce: nonce.String()[:nonceLen]}
		if d.sound(u.Recorded()) {
			u.draft = &d
		}
	}
	return nil
}

// sound reports whether the nonce occurs only in place of the stamps, and not in the
// user's data.
func (d draft) sound(recorded int) bool { return strings.Count(d.payload, d.nonce) == recorded }

// at returns the payload with the given stamp.
func (d draft) at(stamp outbox.Stamp) string {
	return strings.ReplaceAll(d.payload, d.nonce, stamp.String()[:nonceLen])
}
