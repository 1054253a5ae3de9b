package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/redact"
)

func rules(t testing.TB, texts ...string) *redact.Rules {
	t.Helper()
	r, err := redact.New(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRulesTakeOutWhatTheyMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, payload, want string }{
		{"/a", `{"a":1,"b":2}`, `{"a":"[redacted]","b":2}`},
		{"/a/b", `{"a":{"b":{"x":[1,2]},"c":1},"b":1}`, `{"a":{"b":"[redacted]","c":1},"b":1}`},
		{"/a", ` { "a" : "x" , "b" : 1.50 } `, ` { "a" : "[redacted]" , "b" : 1.50 } `},
		{"/items/*/email", `{"items":[{"email":"x"},{"email":"y","id":12345678901234567890}]}`, `{"items":[{"email":"[redacted]"},{"email":"[redacted]","id":12345678901234567890}]}`},
		{"/0", `["a","b"]`, `["[redacted]","b"]`},
		{"/*", `["a",{"b":1}]`, `["[redacted]","[redacted]"]`},
		{"/a/**/z", `{"a":{"z":1,"b":{"z":2,"c":[{"z":3}]}},"z":4}`, `{"a":{"z":"[redacted]","b":{"z":"[redacted]","c":[{"z":"[redacted]"}]}},"z":4}`},
		{"/**/z/y", `{"z":{"y":1},"a":{"z":{"z":{"y":2}}},"y":3}`, `{"z":{"y":"[redacted]"},"a":{"z":{"z":{"y":"[redacted]"}}},"y":3}`},
		{"*password*", `{"userPassword":"x","deep":[{"PASSWORD_2":{"a":1}}],"pass":1}`, `{"userPassword":"[redacted]","deep":[{"PASSWORD_2":"[redacted]"}],"pass":1}`},
		{"ssn", `{"ssn":1,"ssn2":2,"x":["ssn"]}`, `{"ssn":"[redacted]","ssn2":2,"x":["ssn"]}`},
		{"p?n", `{"pin":1,"pan":2,"pn":3}`, `{"pin":"[redacted]","pan":"[redacted]","pn":3}`},
		{"/a~1b/c~0d", `{"a/b":{"c~d":1}}`, `{"a/b":{"c~d":"[redacted]"}}`},
		{"/", `{"":1,"a":2}`, `{"":"[redacted]","a":2}`},
		{"/a", `{"\u0061":1}`, `{"\u0061":"[redacted]"}`},
		{"/a", `{"a":1,"a":2}`, `{"a":"[redacted]","a":"[redacted]"}`},
		{"/a", `"a"`, `"a"`},
		{"/a", `null`, `null`},
		{"/a/b", `{"a":1}`, `{"a":1}`},
		{"/a", ``, ``},
		{"/a", `{"a":`, `"[redacted]"`},
		{"/a", `{} {}`, `"[redacted]"`},
		{"/a", `{"b":tru}`, `"[redacted]"`},
	} {
		if got := string(rules(t, c.rule).JSON(json.RawMessage(c.payload))); got != c.want {
			t.Errorf("%s on %s:\n got %s\nwant %s", c.rule, c.payload, got, c.want)
		}
	}
}

func TestCommonNamesAreOneRule(t *testing.T) {
	t.Parallel()
	payload := json.RawMessage(`{"db_password":"x","Authorization":"y","email":"z","card":{"number":1}}`)
	for text, want := range map[string]string{
		"":                           string(payload),
		"common":                     `{"db_password":"[redacted]","Authorization":"[redacted]","email":"z","card":{"number":1}}`,
		"email, common /card/number": `{"db_password":"[redacted]","Authorization":"[redacted]","email":"[redacted]","card":{"number":"[redacted]"}}`,
		"email":                      `{"db_password":"x","Authorization":"y","email":"[redacted]","card":{"number":1}}`,
	} {
		r, err := redact.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.JSON(payload)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestHiddenValuesAreMaskedInErrors(t *testing.T) {
	t.Parallel()
	r := rules(t, "/card", "*token*")
	payload := json.RawMessage(`{"card":{"number":4111111111111111,"holder":"A. Lovelace","cvc":123},"token":"abcdef","note":"keep"}`)
	got := r.Text("card 4111111111111111 of A. Lovelace refused (abcdef), note keep, code 123", payload)
	if want := "card [redacted] of [redacted] refused ([redacted]), note keep, code 123"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var none *redact.Rules
	if got := none.Text("abcdef", payload); got != "abcdef" || string(none.JSON(payload)) != string(payload) {
		t.Errorf("no rules changed something: %s", got)
	}
}

func TestBadRulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "*", "**", "/a/**", "[", "a/b", "a["} {
		_, err := redact.New(text)
		if invalid := (*fault.Invalid)(nil); !errors.As(err, &invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDeepPayloadsAreMaskedWhole(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	if got := string(rules(t, "/z").JSON(json.RawMessage(deep))); got != `"[redacted]"` {
		t.Errorf("%d bytes are shown", len(got))
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":{"password":"hunter2"},"b":[1,2,{"c":null}]}`)
	f.Add(`[[["x"]], "password", {"pass\u0077ord": 1e5}]`)
	r := rules(f, "/a", "/**/b/*", "*password*")
	f.Fuzz(func(t *testing.T, payload string) {
		got := r.JSON(json.RawMessage(payload))
		if payload == "" {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q became %q", payload, got)
		}
		var v any
		if json.Unmarshal(got, &v) == nil && strings.Contains(fmt.Sprint(find(v)), "shown") {
			t.Errorf("%q became %q", payload, got)
		}
	})
}

// find returns "shown" if a value under a name that is hidden is not masked.
func find(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if strings.Contains(strings.ToLower(key), "password") && value != redact.Mask || find(value) != "" {
				return "shown"
			}
		}
	case []any:
		for _, value := range v {
			if find(value) != "" {
				return "shown"
			}
		}
	}
	return ""
}

func ExampleParse() {
	rules, err := redact.Parse("common, /customer/email")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", rules.JSON(json.RawMessage(`{"customer":{"email":"ada@example.com","name":"Ada"},"api_token":"t-1"}`)))
	// Output: {"customer":{"email":"[redacted]","name":"Ada"},"api_token":"[redacted]"}
}
