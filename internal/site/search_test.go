package site

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestSearchFindsWhatItShould(t *testing.T) {
	t.Parallel()
	x := built(t).index
	for query, want := range map[string]string{
		"outbox":              "guide/outbox",
		"units of work":       "guide/unit-of-work",
		"keephistory":         "guide/fsm",
		"KeepHist":            "guide/fsm",
		"pgbouncer":           "operations/pgbouncer",
		"PERDURE_DRAIN":       "reference/configuration",
		"rate_limited":        "reference/errors",
		"xstate coming":       "guide/from-xstate",
		"temporal":            "coming-from/temporal",
		"restore a backup":    "operations/backup",
		"incarnation restart": "operations/backup",
		"/v1/instances batch": "reference/http",
	} {
		hits := x.search(query)
		found := false
		for _, h := range hits[:min(len(hits), 4)] {
			found = found || strings.HasPrefix(h.URL, want)
		}
		if !found {
			t.Errorf("%q finds %+v, and not %s", query, hits, want)
		}
	}
}

// A page about a word is better than one that only has it often.
func TestSearchPrefersTitles(t *testing.T) {
	t.Parallel()
	x := built(t).index
	for query, want := range map[string]string{"outbox": "guide/outbox", "hooks": "guide/hooks", "alarms": "guide/alarms", "quickstart": "quickstart", "sizing": "operations/sizing"} {
		if hits := x.search(query); len(hits) == 0 || hits[0].URL != want {
			t.Errorf("%q finds %+v first, and not %s", query, hits[:min(len(hits), 1)], want)
		}
	}
}

func TestSearchNeedsAllWords(t *testing.T) {
	t.Parallel()
	x := built(t).index
	if hits := x.search("outbox zzyzx"); len(hits) > 0 {
		t.Errorf("found %+v", hits)
	}
	for _, query := range []string{"", "  ", "…", "\xff\xfe", strings.Repeat("a ", 10_000)} {
		if hits := x.search(query); len(hits) > maxHits {
			t.Errorf("%.20q finds %d places", query, len(hits))
		}
	}
}

func TestSearchAnswersBrowsersWithAndWithoutScripts(t *testing.T) {
	t.Parallel()
	get := serve(t)
	_, _, body := get(prefix + "/search.json?q=outbox")
	var hits []hit
	if err := json.Unmarshal([]byte(body), &hits); err != nil || len(hits) == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	for _, h := range hits {
		address, _, _ := strings.Cut(h.URL, "#")
		if code, _, _ := get(prefix + "/" + address); code != http.StatusOK {
			t.Errorf("%s: status %d", h.URL, code)
		}
	}
	if _, _, body := get(prefix + "/search.json?q="); body != "[]" {
		t.Errorf("no words find %s", body)
	}
	_, _, page := get(prefix + "/search?q=" + url.QueryEscape(`<script>alert(1)</script> outbox`))
	if strings.Contains(page, "<script>alert") {
		t.Error("the query is not escaped")
	}
	if _, _, page := get(prefix + "/search?q=outbox"); !strings.Contains(page, hits[0].Title) {
		t.Error("the page does not show what was found")
	}
}
