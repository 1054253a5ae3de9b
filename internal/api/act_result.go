package api

// What the audit log has of the answers to requests that create something. What was there
// already was not made: it has no entry.

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

// brief leaves out what the actor has shown and said, which are payloads.
func (r Receipt) brief() any {
	return struct {
		Version   int64 `json:"version"`
		Created   bool  `json:"created,omitempty"`
		Duplicate bool  `json:"duplicate,omitempty"`
		Dropped   bool  `json:"dropped,omitempty"`
	}{r.Version, r.Created, r.Duplicate, r.Dropped}
}
