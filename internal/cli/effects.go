package cli

// effect describes what a command changes for its user, and where it runs.
type effect struct {
	// acts is true if the command changes the database and appears in the audit log.
	acts bool
	// why is the reason why a command that changes something is not in the audit log.
	why string
	// local is the reason why a command does not use the API. All other commands use only the
	// API: of a server, or of the database within this process.
	local string
	// database is true if a local command works on the database. Such a command refuses a
	// server.
	database bool
}

var (
	reads = effect{}
	acts  = effect{acts: true}
)

func notAct(why string) effect { return effect{why: why} }

// alone returns the effect of a command that needs neither a database nor its API.
func (e effect) alone(why string) effect {
	e.local = why
	return e
}

// onDatabase returns the effect of a command that works on the database without the API.
func (e effect) onDatabase(why string) effect {
	e.local, e.database = why, true
	return e
}

// The reasons why commands do not use the API.
const (
	checks   = "it checks the database and must not depend on the process that it checks"
	hasKeys  = "the encryption keys are in the environment of this process"
	unneeded = "it needs no database"
)

// effects has every command. It is the only list of the commands that do not use the API. A
// test fails for a command that is missing here, or that acts without an entry in the audit
// log. It also fails for a command that is listed as reading but changes the database.
var effects = map[string]effect{
	"actor list": reads, "actor log": reads, "actor show": reads, "actor timers": reads, "actor types": reads,
	"actor delete": acts, "actor register": acts, "actor reset": acts, "actor resume": acts, "actor send": acts, "actor spawn": acts, "actor stop": acts,
	"actor timers fire": acts, "actor timers move": acts, "actor timers skip": acts,

	"alarm list": reads, "alarm show": reads,
	"alarm cancel": acts, "alarm fire": acts, "alarm move": acts, "alarm retry": acts, "alarm schedule": acts, "alarm skip": acts,

	"audit list": reads, "audit verify": reads.onDatabase(checks), "audit trim": acts,

	"dead": reads, "dead retry": acts,

	"fsm definitions": reads, "fsm history": reads, "fsm journal": reads, "fsm list": reads, "fsm schedules": reads, "fsm show": reads, "fsm wait": reads,
	"fsm cancel": acts, "fsm delete": acts, "fsm purge": acts, "fsm retry": acts, "fsm run": acts, "fsm signal": acts, "fsm start": acts, "fsm terminate": acts,

	"hook list": reads, "hook show": reads,
	"hook cancel": acts, "hook delete": acts, "hook purge": acts, "hook retry": acts, "hook run": acts,

	"key generate": reads.alone(unneeded), "key status": reads.onDatabase(hasKeys), "key rotate": acts.onDatabase(hasKeys),

	"nodes": reads, "nodes drain": acts,

	"outbox consumers": reads, "outbox consumers dead": reads, "outbox consumers list": reads, "outbox list": reads, "outbox status": reads, "outbox tail": reads, "outbox verify": reads.onDatabase(checks),
	"outbox consumers delete": acts, "outbox consumers reset": acts, "outbox consumers retry": acts, "outbox consumers skip": acts, "outbox purge": acts, "outbox restart": acts.onDatabase("it runs after a restore, before servers start"),

	"pause": acts, "pause list": reads, "resume": acts,

	"schedule list": reads, "schedule pause": acts, "schedule resume": acts, "schedule run": acts,

	"task errors": reads, "task lint": reads.onDatabase(checks), "task list": reads, "task show": reads,
	"task cancel": acts, "task delete": acts, "task enqueue": acts, "task purge": acts, "task retry": acts, "task run": acts,

	"token list": reads, "token create": acts, "token revoke": acts,

	"doctor": reads.onDatabase(checks), "status": reads,

	"bench fsm":        notAct("it measures a database that is its own, or empty").onDatabase("it measures the database"),
	"bench outbox":     notAct("it measures a database that is its own, or empty").onDatabase("it measures the database"),
	"chart check":      notAct("it has no database").alone(unneeded),
	"chart draw":       notAct("it has no database, and writes a file").alone(unneeded),
	"chart run":        notAct("it has no database").alone(unneeded),
	"completion":       notAct("it has no database").alone(unneeded),
	"dev":              notAct("it serves; changes through its API are in the audit log").alone("it is a server"),
	"dev clock":        notAct("it moves the sample clock, which is in no table").alone("it calls the server of perdure dev"),
	"dev mail":         notAct("it reads from the server of perdure dev").alone("it calls the server of perdure dev"),
	"dev sms":          notAct("it reads from the server of perdure dev").alone("it calls the server of perdure dev"),
	"healthcheck":      notAct("it reads from a server").alone("it calls the health check of a server"),
	"help":             notAct("it has no database").alone(unneeded),
	"migrate":          notAct("it creates the audit log; the table of migrations records the time of each migration").onDatabase("it creates the tables that the API needs"),
	"serve":            notAct("it serves; changes through its API are in the audit log").alone("it is a server"),
	"task new-process": notAct("it has no database, and writes a file").alone(unneeded),
	"version":          notAct("it has no database").alone(unneeded),
}
