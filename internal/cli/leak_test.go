package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// planted are secrets in every place where there can be one.
var planted = map[string]string{
	"password of the database":    "planted-dsn-password",
	"password of SMTP":            "planted-smtp-password",
	"key of Resend":               "re_PlantedResendKey",
	"token of Twilio":             "planted-twilio-token",
	"secret of webhooks":          "whsec_UGxhbnRlZFdlYmhvb2tTZWNyZXQwMTIzNDU2Nzg5",
	"encryption key":              "UGxhbnRlZEVuY3J5cHRpb25LZXkwMDAwMDAwMDAwMDE=",
	"older encryption key":        "UGxhbnRlZEVuY3J5cHRpb25LZXkwMDAwMDAwMDAwMDI=",
	"token that is not good":      "perdure_sk_PlantedBadTokenAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	"token in a URL":              "planted-query-token",
	"password of basic auth":      "planted-basic-password",
	"header of another product":   "planted-api-key",
	"cookie of another product":   "planted-foreign-cookie",
	"token of a login":            "planted-login-token",
	"body that is no JSON":        "planted-broken-body",
	"body of the wrong type":      "planted-wrong-type",
	"state of an instance":        "planted-state-pin",
	"payload of a signal":         "planted-signal-pin",
	"payload of an alarm":         "planted-alarm-pin",
	"secret of a definition":      "whsec_UGxhbnRlZERlZmluaXRpb25TZWNyZXQwMTIzNDU2",
	"query of an endpoint":        "planted-endpoint-query",
	"password of an endpoint":     "planted-endpoint-password",
	"bad secret of a definition":  "whsec_planted-bad-secret",
	"password that is not secure": "planted-refused-password",
}

// witness remembers everything that a process has said.
type witness struct {
	*testing.T
	mu   sync.Mutex
	said map[string]string
	url  string
	auth string
}

// Write implements io.Writer for the log.
func (w *witness) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said["log"] += string(p)
	return len(p), nil
}

// note remembers what something said.
func (w *witness) note(who, said string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[who] += said
}

func (w *witness) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said["log"]
}

// ask sends a request and returns the body of the answer.
func (w *witness) ask(method, path, body string, header ...string) string {
	w.Helper()
	request, err := http.NewRequestWithContext(enginetest.Context(w), method, w.url+path, strings.NewReader(body))
	enginetest.NoError(w, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+w.auth)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	enginetest.NoError(w, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	enginetest.NoError(w, err)
	shown := bytes.Buffer{}
	_ = answer.Header.Write(&shown)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[method+" "+path] += shown.String() + string(content)
	return string(content)
}

// field returns a text of a JSON object.
func field(t *testing.T, body, name string) string {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	text, _ := o[name].(string)
	if text == "" {
		t.Fatalf("no %s: %s", name, body)
	}
	return text
}

func TestNoSecretIsEverShown(t *testing.T) {
	t.Parallel()
	dsn := withPassword(t, enginetest.New(t, enginetest.Postgres).DSN)
	run(t, "migrate", "--dsn", dsn).want(t, 0)
	admin := strings.TrimSpace(run(t, "token", "create", "admin", "--role", "admin", "--dsn", dsn).stdout)
	w := &witness{T: t, said: map[string]string{}, auth: admin}
	secrets := maps.Clone(planted)
	stop := w.launch(dsn)
	w.use(secrets)
	w.browse()
	w.misuse()
	stop()
	secrets["token of the administrator"] = admin
	if len(secrets) < 20 {
		t.Fatalf("only %d secrets", len(secrets))
	}
	if !strings.Contains(w.log(), "serving") || len(w.said) < 40 {
		t.Fatalf("too little was said: %d answers\n%s", len(w.said), w.log())
	}
	w.check(secrets)
}

// check looks for the secrets in everything that was said.
func (w *witness) check(secrets map[string]string) {
	w.Helper()
	for what, secret := range secrets {
		texts := []string{secret, url.QueryEscape(secret), strings.TrimPrefix(secret, "whsec_")}
		for where, text := range w.said {
			if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(text, s) }) {
				w.Errorf("the %s is in %s:\n%s", what, where, around(text, strings.TrimPrefix(secret, "whsec_")))
			}
		}
	}
}

func around(text, secret string) string {
	i := max(strings.Index(text, secret), 0)
	return text[max(i-200, 0):min(i+200, len(text))]
}

func withPassword(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	enginetest.NoError(t, err)
	u.User = url.UserPassword(u.User.Username(), planted["password of the database"])
	return u.String()
}

// launch starts a server with every secret in its environment.
func (w *witness) launch(dsn string) (stop func()) {
	w.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--log-level", "debug", "--redact", "pin", "--samples", "--email", "resend")
	cmd.Env = append(os.Environ(), childVariable+"=1", "PERDURE_DATABASE_URL="+dsn,
		"PERDURE_SMTP_PASSWORD="+planted["password of SMTP"], "PERDURE_RESEND_KEY="+planted["key of Resend"],
		"PERDURE_TWILIO_TOKEN="+planted["token of Twilio"], "PERDURE_WEBHOOK_SECRETS="+planted["secret of webhooks"],
		"PERDURE_ENCRYPTION_KEYS=b:"+planted["encryption key"]+",a:"+planted["older encryption key"])
	cmd.Stdout, cmd.Stderr = w, w
	enginetest.NoError(w, cmd.Start())
	w.Cleanup(func() { _ = cmd.Process.Kill() })
	enginetest.Eventually(w, "it serves", func() bool {
		w.url = address.FindString(w.log())
		return w.url != ""
	})
	return func() {
		enginetest.NoError(w, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait() // how it ends is not the question
	}
}

// use does ordinary things with secrets in them, and learns further ones.
func (w *witness) use(secrets map[string]string) {
	w.Helper()
	w.ask("PUT", "/v1/definitions/far", fmt.Sprintf(`{"version":1,"url":"https://steps.invalid/x?key=%s","steps":[{"name":"a"}],"secrets":[%q]}`,
		planted["query of an endpoint"], planted["secret of a definition"]))
	w.ask("GET", "/v1/definitions/far", "")
	id := field(w.T, w.ask("POST", "/v1/instances", fmt.Sprintf(`{"definition": "far","state":{"pin":%q}}`, planted["state of an instance"])), "id")
	w.ask("POST", "/v1/instances/"+id+"/signals", fmt.Sprintf(`{"name":"paid","payload":{"pin":%q}}`, planted["payload of a signal"]))
	enginetest.Eventually(w, "its step fails, since there is no such host", func() bool {
		return strings.Contains(w.ask("GET", "/v1/instances/"+id, ""), `"error"`)
	})
	for _, path := range []string{"/signals", "/history", "/children"} {
		w.ask("GET", "/v1/instances/"+id+path, "")
	}
	w.ask("PUT", "/v1/alarms/a1", fmt.Sprintf(`{"type":"remind","delay":"1h","payload":{"pin":%q}}`, planted["payload of an alarm"]))
	w.ask("GET", "/v1/alarms/a1", "")
	// Things that are shown once, to whoever asked for them.
	for what, c := range map[string]struct{ method, path, body, field string }{
		"token of a viewer":                {"POST", "/v1/tokens", `{"name":"viewer","role":"viewer"}`, "token"},
		"secret made for a definition":     {"PUT", "/v1/definitions/near", `{"version":1,"url":"https://steps.example.com/","steps":[{"name":"a"}]}`, "secret"},
		"token of an actor and its caller": {"POST", "/v1/actors/trial/t1/tokens", `{"caller":{"kind":"client","id":"ada"}}`, "token"},
	} {
		body := w.ask(c.method, c.path, c.body)
		if strings.Contains(body, `"`+c.field+`"`) {
			secrets[what] = field(w.T, body, c.field)
		}
		delete(w.said, c.method+" "+c.path)
	}
}

// browse looks at everything that can be looked at.
func (w *witness) browse() {
	w.Helper()
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	enginetest.NoError(w, json.Unmarshal([]byte(w.ask("GET", "/openapi.json", "")), &document))
	lists := 0
	for path, methods := range document.Paths {
		endless := strings.HasSuffix(path, "/stream") || strings.HasSuffix(path, "/tail")
		if methods["get"] == nil || endless || strings.Contains(path, "{") {
			continue
		}
		w.ask("GET", path, "")
		lists++
	}
	if lists < 15 {
		w.Fatalf("the document has %d lists", lists)
	}
	for _, path := range []string{"/", "/metrics", "/version", "/livez", "/readyz?verbose", "/healthz", "/debug/pprof/", "/debug/vars"} {
		w.ask("GET", path, "")
	}
}

// misuse does what is refused, with secrets in it.
func (w *witness) misuse() {
	w.Helper()
	w.ask("GET", "/v1/instances", "", "Authorization", "Bearer "+planted["token that is not good"])
	w.ask("GET", "/v1/instances?token="+planted["token in a URL"], "")
	w.ask("GET", "/v1/hooks", "", "Authorization", "Basic "+planted["password of basic auth"])
	w.ask("GET", "/v1/tasks", "", "X-Api-Key", planted["header of another product"], "Cookie", "session="+planted["cookie of another product"])
	w.ask("POST", "/v1/session", fmt.Sprintf(`{"token":%q}`, planted["token of a login"]))
	w.ask("POST", "/v1/instances", `{"definition": "`+planted["body that is no JSON"])
	w.ask("POST", "/v1/hooks", fmt.Sprintf(`{"namespace":7,"name":{"password":%q}}`, planted["body of the wrong type"]))
	for _, body := range []string{
		fmt.Sprintf(`{"version":1,"url":"https://u:%s@steps.example.com/","steps":[{"name":"a"}]}`, planted["password of an endpoint"]),
		fmt.Sprintf(`{"version":1,"url":"https://steps.example.com/","steps":[{"name":"a"}],"secrets":[%q]}`, planted["bad secret of a definition"]),
	} {
		w.ask("PUT", "/v1/definitions/bad", body)
	}
	for _, dsn := range []string{"postgres://u:%s@127.0.0.1:1/x", "postgres://127.0.0.1:1/x?password=%s", "nonsense://u:%s@h/", "postgres://u:%s@[bad/", "mysql://u:%s@127.0.0.1:1/x"} {
		o := run(w.T, "hook", "list", "--dsn", fmt.Sprintf(dsn, planted["password that is not secure"]))
		w.note("perdure hook list --dsn "+dsn, o.stdout+o.stderr)
	}
}
