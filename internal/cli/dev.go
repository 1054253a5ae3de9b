package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/sqldb"
)

func (a *app) dev() *cobra.Command {
	s := serving{migrate: true, samples: true, lease: sample.Lease, roles: []string{"api", "worker", "ui"}}
	d := &devRun{app: a}
	var data string
	cmd := &cobra.Command{
		Use: "dev", Short: "Serve a sample shop on an embedded database", Args: cobra.NoArgs,
		Long: "Serves the API and the dashboard on an embedded database, and runs a sample shop: orders\n" +
			"with signals and children, hooks, email through a provider that often fails, schedules\n" +
			"and the outbox. Nothing is sent to other hosts: \"perdure dev mail\" and \"perdure dev sms\"\n" +
			"show the messages. \"perdure dev clock\" moves the sample clock. The next run continues\n" +
			"with the same data.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.every <= 0 || d.orders < 0 {
				return usagef("--every must be positive and --orders must not be negative, got %v and %d", d.every, d.orders)
			}
			dsn := "sqlite:" + data
			if a.dsn != "" && !a.fromEnv["dsn"] { // a database of the environment may be in use
				dsn = a.dsn
			}
			d.sent, d.dsn, d.warp = filepath.Join(filepath.Dir(data), "sent"), dsn, clock.NewWarp(0)
			d.screen = newScreen(a.out)
			return a.runServe(cmd.Context(), dsn, &s, d)
		},
	}
	flags := cmd.Flags()
	s.add(flags)
	flags.Lookup("log-level").DefValue, s.level = "warn", "warn"
	flags.StringVar(&data, "data", devData, "SQLite file, if --dsn names no database; messages are stored in the same directory")
	flags.DurationVar(&d.every, "every", time.Second, "interval between two orders")
	flags.Int64Var(&d.orders, "orders", 0, "number of orders after which the command ends (default: without limit)")
	cmd.AddCommand(a.devMessages("mail", "email"), a.devMessages("sms", "sms"), a.devClock())
	return cmd
}

// devRun is one run of the samples.
type devRun struct {
	*app
	dsn, sent string
	every     time.Duration
	orders    int64
	warp      *clock.Warp
	control   *sample.Control
	process   *process
	saved     time.Duration
	screen    *screen
}

// run serves and runs the shop, until the context is cancelled or the requested number of
// orders is reached.
func (d *devRun) run(ctx context.Context, p *process, n *node.Node) (err error) {
	d.process = p
	if err := d.restoreTime(ctx); err != nil {
		return errors.Join(err, n.Close())
	}
	forget, err := announce(filepath.Dir(d.sent), n.URL())
	if err != nil {
		return errors.Join(err, n.Close())
	}
	defer func() { err = errors.Join(err, forget()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.welcome(d.out, n.URL())
	var both sync.WaitGroup
	done := make(chan error, 2)
	both.Go(func() { done <- p.shop.Run(ctx) })
	both.Go(func() { done <- n.Run(ctx) })
	err = d.watch(ctx, done)
	cancel()
	both.Wait()
	close(done)
	for ended := range done { // except one that watch has received
		err = errors.Join(err, ended)
	}
	err = errors.Join(err, d.saveTime(context.WithoutCancel(ctx)))
	if err == nil {
		fmt.Fprintf(d.err, "perdure: ended after %s; to check the database: %s doctor --dsn %s\n",
			count(int(p.shop.Placed()), "order", "orders"), program(os.Args[0]), redacted(d.dsn))
	}
	return err
}

// welcome prints the addresses and the commands to try.
func (d *devRun) welcome(w io.Writer, url string) {
	command := program(os.Args[0])
	if url != defaultServer {
		command += " --server " + url
	}
	fmt.Fprintf(w, "perdure dev is running on %s\n\n", redacted(d.dsn))
	table(w, [][]string{
		{"  dashboard", url + "/"},
		{"  machines", "curl -s '" + url + "/v1/instances?limit=3'"},
		{"  start one", "curl -s " + url + "/v1/instances -H 'Content-Type: application/json' -d '" + `{"definition": "parcel","state":{"order":"A-1","item":"tea"}}` + "'"},
		{"  status", command + " status"},
		{"  read mail", "curl -s '" + url + "/v1/dev/messages?kind=email'   or: " + command + " dev mail | sms"},
		{"  move time", command + " dev clock pause | resume | speed 20 | skip | forward 1h"},
		{"  end", "Ctrl-C"},
	})
	fmt.Fprintln(w)
}

// program returns the command line name of this program: its path if it was run by a path,
// such as bin/perdure.
func program(arg string) string {
	if !strings.HasPrefix(filepath.Base(arg), "perdure") { // a test binary
		return "perdure"
	}
	return arg
}

const (
	// redraw is the refresh interval of the summary on a terminal. report is the interval at
	// which a line of it is printed elsewhere.
	redraw = 500 * time.Millisecond
	report = 5 * time.Second
)

// watch shows the progress until the server or the shop ends.
func (d *devRun) watch(ctx context.Context, done <-chan error) error {
	s := d.screen
	defer s.clear()
	pace := report
	if s.terminal {
		pace = redraw
	}
	for {
		d.show(ctx, s)
		if d.orders > 0 && d.process.shop.Placed() >= d.orders {
			return nil
		}
		timer := clock.System.NewTimer(pace)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C():
		}
		if err := d.saveTime(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("sample clock was not stored", "error", err)
		}
	}
}

func (d *devRun) show(ctx context.Context, s *screen) {
	sum, err := summarize(ctx, d.process)
	switch {
	case err != nil && ctx.Err() == nil:
		slog.Warn("summarize", "error", err)
	case err != nil:
	case d.json:
		_ = d.line(sum) // the reader of the output may have closed it
	case s.terminal:
		s.show(sum.block(d.app))
	default:
		fmt.Fprintln(d.out, sum.line())
	}
}

// aheadSetting is the setting with the difference between the samples' clock and the host's
// clock.
const aheadSetting = "dev.ahead"

// restoreTime continues with the clock of the last run, so that work of that run is not in
// the future.
func (d *devRun) restoreTime(ctx context.Context) error {
	rt := host.Of(d.process.eng)
	get := rt.Store.GetSetting(aheadSetting, func(value string) {
		us, _ := strconv.ParseInt(value, 10, 64) // saveTime has written it
		d.saved = time.Duration(us) * time.Microsecond
	})
	tx, err := rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(ctx, get); err != nil {
		return fmt.Errorf("read sample clock: %w", err)
	}
	d.warp.Skip(d.saved)
	return nil
}

// saveTime stores how far the clock is ahead, if it was moved.
func (d *devRun) saveTime(ctx context.Context) error {
	ahead := max(d.warp.Now().Sub(clock.System.Now()), 0).Truncate(time.Second)
	if ahead == d.saved {
		return nil
	}
	rt := host.Of(d.process.eng)
	tx, err := rt.DB.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Commit(ctx, rt.Store.PutSetting(aheadSetting, strconv.FormatInt(ahead.Microseconds(), 10))...); err != nil {
		return err
	}
	d.saved = ahead
	return nil
}

// devMessages returns the command that shows sent messages.
func (a *app) devMessages(use, kind string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: "List the " + map[string]string{"email": "email", "sms": "SMS"}[kind] + " messages that the sample shop sent", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.devClient(cmd.Context())
			if err != nil {
				return err
			}
			var page struct {
				Data []sample.Message `json:"data"`
			}
			if err := c.get(cmd.Context(), "/v1/dev/messages?kind="+kind, nil, &page); err != nil {
				return err
			}
			return a.show(page, func(w io.Writer) {
				for _, m := range page.Data {
					fmt.Fprintf(w, "%s  %s\n", a.color(grey, instant(m.Sent)), plain(string(m.Message)))
				}
				if len(page.Data) == 0 {
					fmt.Fprintln(w, "no messages")
				}
			})
		},
	}
}

// devClock returns the command that moves the clock of the samples.
func (a *app) devClock() *cobra.Command {
	actions := []string{"pause", "resume", "speed", "skip", "forward"}
	return &cobra.Command{
		Use: "clock [pause|resume|speed <n>|skip|forward <duration>]", Short: "Show or move the sample clock",
		Long: "Shows the sample clock if there is no argument. pause stops the clock and resume starts it\n" +
			"again. speed 20 makes it 20 times as fast. skip moves it to the next due time, forward 1h\n" +
			"moves it forward by one hour.",
		Args: cobra.MaximumNArgs(2), ValidArgs: actions,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := clockCommand(args)
			if err != nil {
				return err
			}
			c, err := a.devClient(cmd.Context())
			if err != nil {
				return err
			}
			var now sample.Time
			if body == nil {
				err = c.get(cmd.Context(), "/v1/dev/clock", nil, &now)
			} else {
				err = c.post(cmd.Context(), "/v1/dev/clock", body, &now)
			}
			if err != nil {
				return err
			}
			return a.show(now, func(w io.Writer) { fmt.Fprintln(w, timeLine(now)) })
		},
	}
}

// clockCommand returns the body of the request for the arguments, or nil if there
// are none.
func clockCommand(args []string) (map[string]any, error) {
	if len(args) == 0 {
		return nil, nil
	}
	body := map[string]any{"action": args[0]}
	value := map[string]string{"speed": "a number", "forward": "a duration"}[args[0]]
	if (value != "") != (len(args) == 2) {
		if value == "" {
			value = "no value"
		}
		return nil, usagef("%s must have %s", args[0], value)
	}
	switch args[0] {
	case "speed":
		speed, err := strconv.ParseFloat(args[1], 64)
		if err != nil {
			return nil, usagef("speed must be a number, got %q", args[1])
		}
		body["speed"] = speed
	case "forward":
		body["by"] = args[1]
	}
	return body, nil
}

func timeLine(t sample.Time) string {
	line := instant(t.Now) + fmt.Sprintf(" at %gx", t.Speed)
	if t.Paused {
		line = instant(t.Now) + " paused"
	}
	if t.NextDue != nil {
		line += fmt.Sprintf(", work is due in %v", max(t.NextDue.Sub(t.Now), 0).Round(100*time.Millisecond))
	}
	return line
}
