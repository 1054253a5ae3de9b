package server_test

import "strings"

// needs is the least role that each operation needs, written down a second time: the
// table of the server is what is tested, so it cannot be the measure. An operation
// that is missing here fails the fuzzer.
var needs = func() map[string]int {
	all := map[string]int{}
	for rank, names := range map[int]string{
		asAnyone: `
			begin-session end-session`,
		asViewer: `
			list-definitions get-definition list-instances get-instance list-children list-signals get-history get-journal wait-instance
			list-schedules list-ticks get-schedule list-hooks get-hook list-dead get-overview get-verdict list-upcoming stream-changes
			list-outbox tail-outbox list-consumers list-consumer-dead get-outbox-status list-nodes list-tasks list-task-errors get-task list-alarms get-alarm list-actors
			get-actor get-snapshot get-log stream-actor open-socket list-timers list-statecharts check-statechart get-statechart draw-statechart
			search get-facets get-me list-pauses`,
		asOperator: `
			start-instance start-instances act-on-instances signal-instance cancel-instance terminate-instance delete-instance
			retry-instance set-schedule change-schedule fire-schedule pause-schedule resume-schedule trigger-hook act-on-hooks
			delete-hook retry-hook cancel-hook replay-hook retry-dead retry-consumer skip-consumer act-on-tasks start-process enqueue-task retry-task cancel-task delete-task
			cancel-alarms act-on-alarms schedule-alarm cancel-alarm move-alarm skip-alarm fire-alarm retry-alarm spawn-actor
			act-on-actors send-event stop-actor resume-actor move-timer skip-timer fire-timer list-audit set-pause remove-pause run-instance run-hook run-task
			open-worker-session close-worker-session exchange-work beat-worker release-work`,
		asAdmin: `
			put-definition delete-definition remove-schedule drain-node delete-actor reset-actor create-actor-token put-statechart
			list-tokens create-token revoke-token list-actor-tokens list-all-actor-tokens
			purge-instances purge-hooks purge-tasks purge-outbox reset-consumer delete-consumer trim-audit`,
	} {
		for _, id := range strings.Fields(names) {
			all[id] = rank
		}
	}
	return all
}()

// The ranks of callers. Each may do all that the ranks before it may.
const (
	asAnyone = iota
	asViewer
	asOperator
	asAdmin
)

// forActors are the operations that the token of the actor in the path may use too.
const forActors = " get-snapshot send-event stream-actor open-socket "
