package site

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// place is a part of a page under one heading: the unit of search results.
type place struct {
	page    *page
	heading heading
	text    string
	words   map[string]int // the number of occurrences of each word
}

// index finds places by words.
type index struct {
	places []*place
	terms  map[string][]int // the places that contain a word
	sorted []string         // the words in order, to find them by prefix
}

func newIndex(pages []*page) *index {
	x := &index{terms: map[string][]int{}}
	for _, p := range pages {
		for _, place := range split(p) {
			x.add(place)
		}
	}
	for word := range x.terms {
		x.sorted = append(x.sorted, word)
	}
	slices.Sort(x.sorted)
	return x
}

// The weights of a word in the title of a page and in a heading. In text, the weight is the
// number of occurrences up to a small limit, because longer places are not better.
const (
	inTitle   = 12
	inHeading = 6
	mostText  = 3
)

func (x *index) add(p *place) {
	p.words = map[string]int{}
	count := func(text string, weight int) {
		for _, w := range words(text) {
			p.words[w] += weight
		}
	}
	count(p.text, 1)
	for w, n := range p.words {
		p.words[w] = min(n, mostText)
	}
	count(p.heading.Text, inHeading)
	if p.heading.ID == "" {
		count(p.page.Title, inTitle)
	} else {
		count(p.page.Title, 1)
	}
	for w := range p.words {
		x.terms[w] = append(x.terms[w], len(x.places))
	}
	x.places = append(x.places, p)
}

// split cuts a page at its headings.
func split(p *page) []*place {
	current := &place{page: p}
	all := []*place{current}
	var text strings.Builder
	flush := func() {
		current.text = strings.TrimSpace(text.String())
		text.Reset()
	}
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		switch {
		case ok && h.Level == 1:
		case ok && h.Level <= 3:
			flush()
			current = &place{page: p, heading: heading{Level: h.Level, ID: id(h), Text: plain(h, p.source)}}
			all = append(all, current)
		default:
			text.WriteString(plain(n, p.source) + " ")
		}
	}
	flush()
	return all
}

// words returns the words of a text in lower case. An identifier with joined words, such as
// outbox.pruned_through, is one word and also its parts.
func words(text string) []string {
	var all []string
	joined := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), joined) {
		w = strings.Trim(w, "_-./")
		parts := strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune("_-./", r) })
		all = append(all, parts...)
		if len(parts) > 1 {
			all = append(all, w)
		}
	}
	return all
}

// hit is a result of a search.
type hit struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Heading string `json:"heading,omitempty"`
	Text    string `json:"text"`
}

// The limits of a search.
const (
	maxHits  = 20
	maxQuery = 200
	maxTerms = 8
)

// search returns the places that contain all words of the query, or words with them as a
// prefix, best first.
func (x *index) search(query string) []hit {
	query = query[:min(len(query), maxQuery)]
	terms := words(strings.ToValidUTF8(query, ""))
	terms = terms[:min(len(terms), maxTerms)]
	if len(terms) == 0 {
		return nil
	}
	scores := x.score(terms[0])
	for _, t := range terms[1:] {
		next := x.score(t)
		for i := range scores {
			if s, ok := next[i]; ok {
				scores[i] += s
			} else {
				delete(scores, i)
			}
		}
	}
	return x.best(scores, terms)
}

// score rates the places for one word. Rare words count more, and whole words more than
// prefixes.
func (x *index) score(term string) map[int]float64 {
	scores := map[int]float64{}
	from, _ := slices.BinarySearch(x.sorted, term)
	for _, word := range x.sorted[from:] {
		if !strings.HasPrefix(word, term) {
			break
		}
		weight := math.Log(1 + float64(len(x.places))/float64(len(x.terms[word])))
		if word != term {
			weight *= float64(len(term)) / float64(len(word)) / 2
		}
		for _, i := range x.terms[word] {
			n := float64(x.places[i].words[word])
			scores[i] = max(scores[i], weight*n/(n+3)*4)
		}
	}
	return scores
}

func (x *index) best(scores map[int]float64, terms []string) []hit {
	var order []int
	for i := range scores {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	var hits []hit
	for _, i := range order[:min(len(order), maxHits)] {
		p := x.places[i]
		h := hit{URL: p.page.url, Title: p.page.Title, Heading: p.heading.Text, Text: excerpt(p.text, terms)}
		if p.heading.ID != "" {
			h.URL += "#" + p.heading.ID
		}
		hits = append(hits, h)
	}
	return hits
}

// excerptLength is the number of characters of a place that are shown.
const excerptLength = 160

// excerpt returns the part of a text around the first matching word.
func excerpt(text string, terms []string) string {
	runes := []rune(text)
	at := 0
	lower := []rune(strings.ToLower(text))
	if len(lower) == len(runes) {
		if i := strings.Index(string(lower), terms[0]); i > 0 {
			at = max(0, len([]rune(string(lower)[:i]))-excerptLength/4)
		}
	}
	end := min(len(runes), at+excerptLength)
	cut := string(runes[at:end])
	if at > 0 {
		cut = "…" + cut
	}
	if end < len(runes) {
		cut += "…"
	}
	return cut
}
