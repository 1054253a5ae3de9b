package store

// texts returns a column in PostgreSQL's own notation of arrays, in one piece: the
// driver would allocate for each of its values. It serves uuid[] and text[] alike.
func texts(column []string) string {
	size := 2
	for _, text := range column {
		size += len(text) + 3
	}
	b := append(make([]byte, 0, size), '{')
	for i, text := range column {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, text)
	}
	return string(append(b, '}'))
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
	b := append(make([]byte, 0, size), '{')
	for i, text := range column {
		if i > 0 {
			b = append(b, ',')
		}
		if text == nil {
			b = append(b, "null"...)
			continue
		}
		b = quote(b, *text)
	}
	return string(append(b, '}'))
}

// quote appends a text as a value of an array.
func quote(b []byte, text string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(text) {
		if c := text[i]; c == '"' || c == '\\' {
			b = append(append(b, text[from:i]...), '\\')
			from = i
		}
	}
	return append(append(b, text[from:]...), '"')
}
