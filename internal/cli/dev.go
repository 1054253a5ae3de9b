package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func (a *app) dev() *cobra.Command {
	var data string
	var every time.Duration
	var units int
	cmd := &cobra.Command{
		Use: "dev", Short: "Run Perdure on an embedded database, with sample work", Args: cobra.NoArgs,
		Long: "Opens an embedded database, creates a sample bank in it, moves money every second and\n" +
			"prints the outbox as it grows, until interrupted. The data stays for the next time.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every <= 0 || units < 0 {
				return usagef("--every must be more than 0, and --units not less")
			}
			dsn := "sqlite:" + data
			if a.dsn != "" && !a.fromEnv["dsn"] { // the environment's may be dear to someone
				dsn = a.dsn
			}
			return a.runDev(cmd.Context(), dsn, every, units)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&data, "data", "data/dev.db", "the SQLite file, unless --dsn names a database")
	flags.DurationVar(&every, "every", time.Second, "how often money moves")
	flags.IntVar(&units, "units", 0, "end after so many units (default: never)")
	return cmd
}

func (a *app) runDev(ctx context.Context, dsn string, every time.Duration, units int) error {
	if err := makeDirectory(dsn); err != nil {
		return err
	}
	bank := newBank()
	eng, err := perdure.Open(ctx, dsn, &perdure.Options{Schemas: []*schema.Schema{bank.schema}, Outbox: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "perdure: running on %s; end with Ctrl-C\n", redacted(dsn))
	d := &devRun{app: a, eng: eng, bank: bank, begun: clock.System.Now()}
	err = d.run(ctx, every, units)
	a.progress("")
	err = errors.Join(err, eng.Close())
	if err == nil {
		fmt.Fprintf(a.err, "perdure: %s; check them with: perdure outbox verify --dsn %s\n", d.line(), redacted(dsn))
	}
	return err
}

// devRun is one run of the sample: it writes, and prints what the outbox
// tells of it.
type devRun struct {
	*app
	eng   *perdure.Engine
	bank  *bank
	begun time.Time
	units int
	last  outbox.Stamp
}

// run writes in the background and prints here, so that what is printed is
// what a reader sees, not what a writer says.
func (d *devRun) run(ctx context.Context, every time.Duration, units int) error {
	from, err := newest(ctx, d.eng)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	written := make(chan error, 1)
	go func() {
		err := d.write(ctx, every)
		cancel()
		written <- err
	}()
	err = d.print(ctx, from, units)
	cancel()
	return errors.Join(err, <-written)
}

func (d *devRun) write(ctx context.Context, every time.Duration) error {
	err := d.bank.found(ctx, d.eng)
	for err == nil {
		err = d.bank.transfer(ctx, d.eng)
		timer := clock.System.NewTimer(every)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
	if ctx.Err() != nil { // interrupted, which is how this ends
		return nil
	}
	return err
}

func (d *devRun) print(ctx context.Context, from outbox.Stamp, units int) error {
	for e, err := range d.eng.Outbox().Tail(ctx, from, nil) {
		if err != nil {
			return err
		}
		d.progress("")
		if err := d.printEntry(e); err != nil {
			return err
		}
		d.units, d.last = d.units+1, e.Stamp
		d.progress(d.line())
		if d.units == units {
			return nil
		}
	}
	return nil
}

func (d *devRun) line() string {
	elapsed := clock.System.Now().Sub(d.begun).Seconds()
	return fmt.Sprintf("%s, last %s, %.1f units/s", count(d.units, "unit", "units"), orNone(d.last), float64(d.units)/elapsed)
}

// bank is the sample: money that moves and is never lost.
type bank struct {
	schema              *schema.Schema
	accounts, transfers *schema.Table
}

func newBank() *bank {
	accounts := schema.NewTable("accounts", schema.String("owner"), schema.Int("balance"))
	transfers := schema.NewTable("transfers",
		schema.Ref("from", accounts), schema.Ref("to", accounts), schema.Int("amount"), schema.Time("at").DefaultNow())
	return &bank{schema: schema.New("bank", accounts, transfers), accounts: accounts, transfers: transfers}
}

var owners = []string{"ada", "bea", "carl", "dora", "emil"}

// found opens the accounts, the first time.
func (b *bank) found(ctx context.Context, eng *perdure.Engine) error {
	return eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := tx.Get(b.accounts, owners[0])
		var missing *fault.NotFound
		if !errors.As(err, &missing) {
			return err
		}
		for _, owner := range owners {
			_, _ = tx.Create(b.accounts, schema.Values{"id": owner, "owner": owner, "balance": 1000}) // Update returns the error
		}
		return nil
	})
}

// transfer moves money between two accounts.
func (b *bank) transfer(ctx context.Context, eng *perdure.Engine) error {
	pair := rand.Perm(len(owners))
	return eng.Update(ctx, func(tx *perdure.Tx) error {
		from, err := tx.Get(b.accounts, owners[pair[0]])
		if err != nil {
			return err
		}
		to, err := tx.Get(b.accounts, owners[pair[1]])
		if err != nil {
			return err
		}
		amount := rand.Int64N(from.Int("balance")/10 + 1)                              // never more than there is
		_ = tx.UpdateRow(from, schema.Values{"balance": from.Int("balance") - amount}) // Update returns the error
		_ = tx.UpdateRow(to, schema.Values{"balance": to.Int("balance") + amount})
		_, err = tx.Create(b.transfers, schema.Values{"from": from, "to": to, "amount": amount})
		return err
	})
}
