package api

// The methods below return the parts of responses that are written to the audit log, for
// requests that create something. A resource that already existed was not created, and has
// no entry.

func (s Started) made() []string {
	if s.Duplicate {
		return nil
	}
	return []string{s.ID}
}

func (b BatchResult) made() (ids []string) {
	for _, s := range b.Data {
		ids = append(ids, s.made()...)
	}
	return ids
}

func (b BatchResult) brief() any { return nil }

func (d Acted) made() []string { return []string{d.ID} }

func (r Receipt) made() []string {
	if !r.Created {
		return nil
	}
	return []string{r.Type + "/" + r.ID}
}

// acted reports whether the signal was delivered, not dropped because of its key.
func (d Delivered) acted(string) bool { return !d.Duplicate }

// brief leaves out the actor's snapshot and output, which are payloads.
func (r Receipt) brief() any {
	return struct {
		Version   int64 `json:"version"`
		Created   bool  `json:"created,omitempty"`
		Duplicate bool  `json:"duplicate,omitempty"`
		Dropped   bool  `json:"dropped,omitempty"`
	}{r.Version, r.Created, r.Duplicate, r.Dropped}
}
