package cli

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/server"
)

// webhookSecrets is the variable with the secret that signs webhooks of alarms, or with two
// secrets during a rotation. It has no flag, because other users of the host can see flags.
const webhookSecrets = envPrefix + "WEBHOOK_SECRETS"

// guards are the flags for redaction and for the addresses that the server may reach.
type guards struct {
	redact, allow []string
	streams       int
	sockets       int
	requests      int
	audit         ageFlag
	webhooks      *webhooks // nil: webhooks are not sent
}

func (g *guards) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&g.redact, "redact", nil, "paths and names whose values are hidden in payloads: /card/number, /items/*/email, *password*, common")
	flags.StringSliceVar(&g.allow, "egress-allow", nil, "non-public networks and hosts that webhooks and remote steps may reach: 10.0.0.0/8, billing.internal, *.internal")
	g.audit = ageFlag(server.DefaultAuditRetention)
	flags.Var(&g.audit, "audit-retention", "retention of the audit log, for example 400d; 0: without limit")
	flags.IntVar(&g.streams, "max-streams", 1000, "maximum number of open streams and waiting requests per API token; negative: without limit")
	flags.IntVar(&g.sockets, "max-sockets", 1000, "maximum number of open WebSockets per API token; negative: without limit")
	flags.IntVar(&g.requests, "max-requests", 256, "maximum number of other concurrent requests per API token; negative: without limit")
}

// apply makes the options of a server from the flags.
func (g *guards) apply(a *app, eng *perdure.Engine, o *server.Options) error {
	o.Redact, o.Remote = g.redact, &remote.Options{Allow: g.allow}
	if o.AuditRetention = time.Duration(g.audit); g.audit == 0 {
		o.AuditRetention = -1
	}
	o.MaxStreams, o.MaxSockets, o.MaxRequests = g.streams, g.sockets, g.requests
	sender, err := g.sender(a)
	if err != nil || sender == nil || o.Alarms != nil {
		return err
	}
	g.webhooks = &webhooks{}
	g.webhooks.sender.Store(&sender)
	o.Alarms, err = alarm.New(eng, &alarm.Options{Sender: g.webhooks})
	return err
}

// sender returns the sender of webhooks, or nil if there are no secrets for it.
func (g *guards) sender(a *app) (alarm.Sender, error) {
	name, secrets, err := a.lookup([]string{webhookSecrets})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if secrets == "" {
		return nil, nil
	}
	return alarm.NewSender(secrets, &alarm.SenderOptions{Allow: g.allow})
}
