package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Head has the end of a chain, and the point up to which retention has removed it.
type Head struct {
	Chain int
	// Seq and Hash are those of the last entry; 0 and empty in a new chain.
	Seq  int64
	Hash []byte
	// BaseSeq and BaseHash are those of the last entry that retention has removed.
	BaseSeq  int64
	BaseHash []byte
}

// Append makes the texts of the entries storable, sets the positions and hashes of the
// entries after the head, and returns the new head.
func (h Head) Append(entries []Entry) Head {
	for i := range entries {
		e := &entries[i]
		e.tidy()
		h.Seq++
		e.Chain, e.Seq = h.Chain, h.Seq
		e.Hash = e.digest(h.Hash)
		h.Hash = e.Hash
	}
	return h
}

// digest returns the hash of an entry that follows another one. Every field is hashed with
// its length, so that different entries never produce the same bytes.
func (e *Entry) digest(before []byte) []byte {
	sum := sha256.New()
	field := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		sum.Write(size[:])
		sum.Write(b)
	}
	field(before)
	field(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(e.Chain)), uint64(e.Seq)))
	for _, text := range []string{
		e.ID, e.At.UTC().Format(time.RFC3339Nano), e.Action, e.Kind, e.Target, e.Principal, e.Label, e.Role,
		e.Via, e.Address, e.Request, e.Reason, e.Input, e.Before, e.After,
	} {
		field([]byte(text))
	}
	return sum.Sum(nil)
}

// HashText returns the hash in hex.
func (e Entry) HashText() string { return hex.EncodeToString(e.Hash) }

// Trim is the action of the entry that records what retention has removed. Its After is a
// Trimmed.
const Trim = "trim-audit"

// Trimmed has the last entry of a chain that was removed.
type Trimmed struct {
	Through int64  `json:"through"`
	Hash    string `json:"hash"`
	Removed int64  `json:"removed"`
}

// Verifier checks the entries of one chain, in order.
type Verifier struct {
	head Head
	seq  int64
	hash []byte
	// based is true if an entry explains what retention has removed.
	based    bool
	problems []string
}

// maxProblems is the maximum number of problems of a chain that are described.
const maxProblems = 10

// NewVerifier returns a verifier for the chain of a head.
func NewVerifier(h Head) *Verifier {
	return &Verifier{head: h, seq: h.BaseSeq, hash: h.BaseHash, based: h.BaseSeq == 0}
}

// Entry checks the next entry.
func (v *Verifier) Entry(e Entry) {
	if e.Seq != v.seq+1 {
		v.problem("entries %d to %d of chain %d are missing", v.seq+1, e.Seq-1, v.head.Chain)
		v.hash = nil // the missing hash is not known
	}
	want := e.digest(v.hash)
	if e.Seq == v.seq+1 && !bytes.Equal(want, e.Hash) {
		v.problem("entry %d of chain %d (%s) was changed", e.Seq, v.head.Chain, e.ID)
	}
	if e.Action == Trim && v.explains(e) {
		v.based = true
	}
	v.seq, v.hash = e.Seq, e.Hash
}

// End returns the problems of the chain.
func (v *Verifier) End() []string {
	switch {
	case v.seq < v.head.Seq:
		v.problem("entries %d to %d of chain %d are missing", v.seq+1, v.head.Seq, v.head.Chain)
	case v.seq > v.head.Seq:
		v.problem("entries %d to %d of chain %d were added after its last entry", v.head.Seq+1, v.seq, v.head.Chain)
	case !bytes.Equal(v.hash, v.head.Hash):
		v.problem("the last hash of chain %d differs from the hash of its last entry", v.head.Chain)
	}
	if !v.based {
		v.problem("no entry of chain %d records its removal up to %d", v.head.Chain, v.head.BaseSeq)
	}
	return v.problems
}

func (v *Verifier) problem(format string, args ...any) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	}
}

// explains reports whether an entry records that the chain was removed up to its base.
func (v *Verifier) explains(e Entry) bool {
	var t Trimmed
	return json.Unmarshal([]byte(e.After), &t) == nil && t.Through == v.head.BaseSeq && t.Hash == hex.EncodeToString(v.head.BaseHash)
}
