package store

import "strings"

// texts returns a column as one PostgreSQL array literal. With a slice, the driver would
// allocate for each value. It is used for uuid[] and text[].
func texts(column []string) string {
	size := 2
	for _, text := range column {
		size += len(text) + 3
	}
	var b strings.Builder
	b.Grow(size + size/8)
	b.WriteByte('{')
	for i, text := range column {
		if i > 0 {
			b.WriteByte(',')
		}
		quote(&b, text)
	}
	b.WriteByte('}')
	return b.String()
}

// nullTexts is texts for a column with nulls.
func nullTexts(column []*string) string {
	size := 2
	for _, text := range column {
		size += len("null,")
		if text != nil {
			size += len(*text)
		}
	}
	var b strings.Builder
	b.Grow(size + size/8)
	b.WriteByte('{')
	for i, text := range column {
		if i > 0 {
			b.WriteByte(',')
		}
		if text == nil {
			b.WriteString("null")
			continue
		}
		quote(&b, *text)
	}
	b.WriteByte('}')
	return b.String()
}

// quote appends a text as an array element.
func quote(b *strings.Builder, text string) {
	b.WriteByte('"')
	from := 0
	for i := range len(text) {
		if c := text[i]; c == '"' || c == '\\' {
			b.WriteString(text[from:i])
			b.WriteByte('\\')
			from = i
		}
	}
	b.WriteString(text[from:])
	b.WriteByte('"')
}
