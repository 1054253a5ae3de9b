package cli

// effect is what a command changes on behalf of the person who runs it.
type effect struct {
	// acts says that the command changes the database, and that the audit log has it.
	acts bool
	// why says why a command that changes something is not in the audit log.
	why string
}

var (
	reads = effect{}
	acts  = effect{acts: true}
)

func notAct(why string) effect { return effect{why: why} }

// effects has every command. A test fails for a command that is missing here, for one
// that acts without an entry in the audit log, and for one that reads but changes the
// database.
var effects = map[string]effect{
	"actor list": reads, "actor log": reads, "actor show": reads, "actor timers": reads, "actor types": reads,
	"actor register": acts, "actor reset": acts, "actor send": acts, "actor spawn": acts, "actor stop": acts,
	"actor timers fire": acts, "actor timers move": acts, "actor timers skip": acts,

	"alarm list": reads, "alarm show": reads,
	"alarm cancel": acts, "alarm fire": acts, "alarm move": acts, "alarm retry": acts, "alarm schedule": acts, "alarm skip": acts,

	"audit list": reads, "audit verify": reads, "audit trim": acts,

	"dead": reads, "dead retry": acts,

	"fsm definitions": reads, "fsm list": reads, "fsm schedules": reads, "fsm show": reads,
	"fsm cancel": acts, "fsm delete": acts, "fsm purge": acts, "fsm retry": acts, "fsm signal": acts, "fsm start": acts, "fsm terminate": acts,

	"hooks list": reads, "hooks show": reads,
	"hooks cancel": acts, "hooks delete": acts, "hooks purge": acts, "hooks retry": acts,

	"keys generate": reads, "keys status": reads, "keys rotate": acts,

	"nodes": reads, "nodes drain": acts,

	"outbox consumers": reads, "outbox consumers list": reads, "outbox list": reads, "outbox status": reads, "outbox tail": reads, "outbox verify": reads,
	"outbox consumers forget": acts, "outbox consumers reset": acts, "outbox prune": acts, "outbox restart": acts,

	"task errors": reads, "task lint": reads, "task list": reads, "task show": reads,
	"task cancel": acts, "task enqueue": acts, "task purge": acts, "task retry": acts,

	"token list": reads, "token create": acts, "token revoke": acts,

	"doctor": reads, "status": reads,

	"bench fsm":        notAct("it measures a database that is its own, or empty"),
	"bench outbox":     notAct("it measures a database that is its own, or empty"),
	"chart check":      notAct("it has no database"),
	"chart draw":       notAct("it has no database, and writes a file"),
	"chart run":        notAct("it has no database"),
	"completion":       notAct("it has no database"),
	"dev":              notAct("it serves; what is done with its API is in the audit log"),
	"dev clock":        notAct("it moves the time of the samples, which is in no table"),
	"dev mail":         notAct("it reads from the server of the samples"),
	"dev sms":          notAct("it reads from the server of the samples"),
	"healthcheck":      notAct("it reads from a server"),
	"help":             notAct("it has no database"),
	"migrate":          notAct("it creates the audit log; the table of migrations has what was done when"),
	"serve":            notAct("it serves; what is done with its API is in the audit log"),
	"task new-process": notAct("it has no database, and writes a file"),
	"version":          notAct("it has no database"),
}
