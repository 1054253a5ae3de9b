package cli

import "github.com/spf13/cobra"

// examples has an example of every command that does something. A test fails for a command
// that is missing here, and for an example whose arguments the command refuses.
var examples = map[string]string{
	"actor list":        "perdure actor list --type order --status active",
	"actor log":         "perdure actor log order/42",
	"actor register":    "perdure actor register order order.json",
	"actor reset":       "perdure actor reset order/42 --step 7 --reason \"undo a wrong event\"",
	"actor send":        "perdure actor send order/42 PAY --data '{\"amount\": 12}' --key payment-7",
	"actor show":        "perdure actor show order/42 --as client/ann",
	"actor spawn":       "perdure actor spawn order/42 --input '{\"item\": \"tea\"}' --if-absent",
	"actor stop":        "perdure actor stop order/42",
	"actor resume":      "perdure actor resume order/42",
	"actor delete":      "perdure actor delete order/42",
	"actor timers":      "perdure actor timers order/42",
	"actor timers fire": "perdure actor timers fire order/42 0.order.open",
	"actor timers move": "perdure actor timers move order/42 0.order.open --to 2026-03-01T12:00:00Z",
	"actor timers skip": "perdure actor timers skip order/42 0.order.open",
	"actor types":       "perdure actor types",

	"alarm cancel":   "perdure alarm cancel nightly-report",
	"alarm fire":     "perdure alarm fire nightly-report",
	"alarm list":     "perdure alarm list --type webhook --status failed,quarantined",
	"alarm move":     "perdure alarm move nightly-report --to 2026-03-01T12:00:00Z",
	"alarm retry":    "perdure alarm retry --all --type webhook",
	"alarm schedule": "perdure alarm schedule nightly-report --cron \"30 2 * * *\" --webhook https://example.com/report",
	"alarm show":     "perdure alarm show nightly-report",
	"alarm skip":     "perdure alarm skip nightly-report",

	"audit list":   "perdure audit list --since 7d --principal os:ann",
	"audit trim":   "perdure audit trim --older-than 90d",
	"audit verify": "perdure audit verify --json",

	"bench fsm":    "perdure bench fsm --instances 5000",
	"bench outbox": "perdure bench outbox --writers 1,8 --duration 5s",

	"chart check": "perdure chart check order.json --allow-unknown",
	"chart draw":  "perdure chart draw order.json --output order.svg",
	"chart run":   "perdure chart run order.json --input '{\"item\": \"tea\"}'",

	"dead":       "perdure dead --kind hooks",
	"dead retry": "perdure dead retry --kind hooks --error \"connection refused\"",

	"dev":       "perdure dev --every 5s",
	"dev clock": "perdure dev clock forward 1h",
	"dev mail":  "perdure dev mail",
	"dev sms":   "perdure dev sms",

	"doctor": "perdure doctor --dsn sqlite:app.db",

	"fsm cancel":      "perdure fsm cancel 0198c2b4-7d4e-7000-8000-000000000001 --reason \"ordered twice\"",
	"fsm definitions": "perdure fsm definitions",
	"fsm delete":      "perdure fsm delete 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm history":     "perdure fsm history 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm journal":     "perdure fsm journal 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm list":        "perdure fsm list --definition order --live",
	"fsm purge":       "perdure fsm purge --older-than 30d",
	"fsm retry":       "perdure fsm retry 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm run":         "perdure fsm run 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm schedules":   "perdure fsm schedules",
	"fsm show":        "perdure fsm show 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm signal":      "perdure fsm signal 0198c2b4-7d4e-7000-8000-000000000001 paid --payload '{\"amount\": 12}'",
	"fsm start":       "perdure fsm start order --state '{\"item\": \"tea\"}' --unique order-42",
	"fsm terminate":   "perdure fsm terminate 0198c2b4-7d4e-7000-8000-000000000001",
	"fsm wait":        "perdure fsm wait 0198c2b4-7d4e-7000-8000-000000000001 --timeout 1m",

	"healthcheck": "perdure healthcheck --server http://127.0.0.1:7070 --timeout 2s",

	"hook cancel": "perdure hook cancel 0198c2b4-7d4e-7000-8000-000000000001",
	"hook delete": "perdure hook delete 0198c2b4-7d4e-7000-8000-000000000001",
	"hook list":   "perdure hook list --status failed,quarantined",
	"hook purge":  "perdure hook purge --older-than 30d",
	"hook retry":  "perdure hook retry 0198c2b4-7d4e-7000-8000-000000000001",
	"hook run":    "perdure hook run 0198c2b4-7d4e-7000-8000-000000000001",
	"hook show":   "perdure hook show 0198c2b4-7d4e-7000-8000-000000000001",

	"key generate": "perdure key generate 2026-03",
	"key rotate":   "perdure key rotate --dsn postgres://127.0.0.1/app",
	"key status":   "perdure key status --dsn postgres://127.0.0.1/app",

	"migrate": "perdure migrate --dsn postgres://127.0.0.1/app",

	"nodes":       "perdure nodes",
	"nodes drain": "perdure nodes drain 0198c2b4-7d4e-7000-8000-000000000001",

	"outbox consumers":        "perdure outbox consumers",
	"outbox consumers dead":   "perdure outbox consumers dead search-index",
	"outbox consumers delete": "perdure outbox consumers delete search-index",
	"outbox consumers list":   "perdure outbox consumers list",
	"outbox consumers reset":  "perdure outbox consumers reset search-index --to 000000000000000000000000",
	"outbox consumers retry":  "perdure outbox consumers retry search-index 000000000000000000070000",
	"outbox consumers skip":   "perdure outbox consumers skip search-index 000000000000000000070000",
	"outbox list":             "perdure outbox list --limit 10 --json",
	"outbox purge":            "perdure outbox purge --older-than 30d",
	"outbox restart":          "perdure outbox restart --reason \"restored from the backup of 3 May\" --yes",
	"outbox status":           "perdure outbox status",
	"outbox tail":             "perdure outbox tail --new --json",
	"outbox verify":           "perdure outbox verify --watch 1m",

	"schedule list":   "perdure schedule list",
	"pause":           `perdure pause queue:mail --reason "provider is down" --until 2026-03-01T12:00:00Z`,
	"pause list":      `perdure pause list`,
	"resume":          `perdure resume queue:mail`,
	"schedule pause":  "perdure schedule pause nightly-report",
	"schedule resume": "perdure schedule resume nightly-report",
	"schedule run":    "perdure schedule run nightly-report",

	"serve":  "perdure serve --dsn postgres://127.0.0.1/app --listen 127.0.0.1:7070",
	"status": "perdure status --watch --interval 5s",

	"task cancel":      "perdure task cancel 7",
	"task delete":      "perdure task delete 7",
	"task enqueue":     "perdure task enqueue db_function '{\"db_function\": \"comms.send_email_supervisor\", \"send_email_task_id\": 7}'",
	"task errors":      "perdure task errors --task 7",
	"task lint":        "perdure task lint --dsn postgres://127.0.0.1/app",
	"task list":        "perdure task list --type email --status failed",
	"task new-process": "perdure task new-process welcome_mail --dir migrations",
	"task purge":       "perdure task purge --older-than 30d",
	"task retry":       "perdure task retry 7",
	"task run":         "perdure task run 7",
	"task show":        "perdure task show 7",

	"token create": "perdure token create ci --role operator --expires 90d",
	"token list":   "perdure token list --actor order/42",
	"token revoke": "perdure token revoke 0198c2b4-7d4e-7000-8000-000000000001",

	"version": "perdure version --json",
}

// addExamples adds the examples to the help texts of the commands.
func addExamples(root *cobra.Command) {
	walk(root, func(cmd *cobra.Command) {
		if text := examples[pathOf(cmd)]; text != "" {
			cmd.Example = "  " + text
		}
	})
}
