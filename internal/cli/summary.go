package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// summary is the progress of the samples.
type summary struct {
	Time   sample.Time   `json:"time"`
	Orders int64         `json:"orders"`
	Kinds  []kindSummary `json:"kinds"`
	Outbox string        `json:"outbox_last"`
	Mail   int           `json:"mail"`
	SMS    int           `json:"sms"`
}

// kindSummary has the work of one kind that this process has done, and the remaining work.
type kindSummary struct {
	Kind    string `json:"kind"`
	Done    int64  `json:"done"`
	Failed  int64  `json:"failed"`
	Running int64  `json:"running"`
	Waiting int64  `json:"waiting"`
	Dead    int64  `json:"dead"`
}

// summarize reads the summary from the workers and the database.
func summarize(ctx context.Context, p *process) (*summary, error) {
	s := &summary{
		Time: p.dev.control.Time(ctx), Orders: p.shop.Placed(),
		Mail: p.shop.Mailbox().Count("email"), SMS: p.shop.Mailbox().Count("sms"),
	}
	rt := host.Of(p.eng)
	for _, w := range rt.Workers.All() {
		stats, k := w.Stats(), s.kind(w.Kind())
		k.Done += stats.Committed - stats.Failed
		k.Failed += stats.Failed
		k.Running += stats.Running
	}
	for _, stmt := range rt.Store.Depths(rt.Clock.Now(), s.add) {
		if err := sqldb.Each(ctx, rt.DB, stmt.Row, stmt.SQL, stmt.Args...); err != nil {
			return nil, err
		}
	}
	s.Kinds = slices.DeleteFunc(s.Kinds, func(k kindSummary) bool { return k == kindSummary{Kind: k.Kind} }) // nothing to show
	status, err := p.eng.Outbox().Status(ctx)
	s.Outbox = status.Last.String()
	return s, err
}

func (s *summary) kind(name string) *kindSummary {
	for i := range s.Kinds {
		if s.Kinds[i].Kind == name {
			return &s.Kinds[i]
		}
	}
	s.Kinds = append(s.Kinds, kindSummary{Kind: name})
	return &s.Kinds[len(s.Kinds)-1]
}

// add counts work in the database.
func (s *summary) add(d store.Depth) {
	switch {
	case d.Status == store.StatusRunning: // counted by its worker
	case d.Dead():
		s.kind(d.Kind).Dead += d.N
	default:
		s.kind(d.Kind).Waiting += d.N
	}
}

// line formats the summary in one line.
func (s *summary) line() string {
	parts := []string{instant(s.Time.Now), count(int(s.Orders), "order", "orders")}
	for _, k := range s.Kinds {
		parts = append(parts, fmt.Sprintf("%ss: %d done, %d failed, %d waiting, %d dead", k.Kind, k.Done, k.Failed, k.Waiting, k.Dead))
	}
	return strings.Join(append(parts, fmt.Sprintf("mail %d", s.Mail), fmt.Sprintf("SMS %d", s.SMS)), " · ")
}

// block formats the summary as a table.
func (s *summary) block(a *app) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", timeLine(s.Time))
	rows := [][]string{{"", "DONE", "FAILED", "RUNNING", "WAITING", "DEAD"}}
	for _, k := range s.Kinds {
		rows = append(rows, []string{k.Kind + "s", number(k.Done), number(k.Failed), number(k.Running), number(k.Waiting), number(k.Dead)})
	}
	table(&b, rows)
	fmt.Fprintf(&b, "\n%s · outbox at %s · %s · %d SMS\n", count(int(s.Orders), "order", "orders"), a.color(grey, s.Outbox),
		count(s.Mail, "mail", "mails"), s.SMS)
	return b.String()
}

func number(n int64) string { return thousands(int(n)) }

// screen shows one block of text that is updated in place.
type screen struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	block string
}

func newScreen(out io.Writer) *screen { return &screen{out: out, terminal: isTerminal(out)} }

// show replaces the block.
func (s *screen) show(block string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.block = block
	fmt.Fprint(s.out, block)
}

// Write prints text above the block, for logs.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	n, err := s.out.Write(text)
	fmt.Fprint(s.out, s.block)
	return n, err
}

// clear removes the block.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.block = ""
}

func (s *screen) erase() {
	if lines := strings.Count(s.block, "\n"); lines > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", lines)
	}
}
