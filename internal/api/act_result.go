package api

// What the audit log has of the answers to requests that create something.

func (s Started) made() []string { return []string{s.ID} }

func (b BatchResult) made() []string {
	ids := make([]string, len(b.Data))
	for i, s := range b.Data {
		ids[i] = s.ID
	}
	return ids
}

func (b BatchResult) brief() any { return nil }

func (d Acted) made() []string { return []string{d.ID} }

func (r Receipt) made() []string { return []string{r.Type + "/" + r.ID} }

// brief leaves out what the actor has shown and said, which are payloads.
func (r Receipt) brief() any {
	return struct {
		Version   int64 `json:"version"`
		Created   bool  `json:"created,omitempty"`
		Duplicate bool  `json:"duplicate,omitempty"`
		Dropped   bool  `json:"dropped,omitempty"`
	}{r.Version, r.Created, r.Duplicate, r.Dropped}
}
