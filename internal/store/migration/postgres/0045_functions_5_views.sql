-- Views with a stable form, for applications and reports. A later version of a view has
-- another name. Columns may be added at the end. Payloads and states that are encrypted at
-- rest are shown encrypted.

-- The newest and older versions of the definitions of state machines that processes have
-- registered.
create view perdure.v1_machines as
select
  -- text. The name.
  d.fsm as machine,
  -- integer. The version.
  d.version,
  -- text. The first step.
  d.first_step,
  -- text. The queue of instances that are started without a queue.
  d.queue,
  -- json. The names of the steps, an array.
  d.steps,
  -- json?. The JSON Schema of the state, if it is known.
  d.schema,
  -- timestamptz. The time when a process registered it last.
  d.updated_at
from perdure.definitions d;

-- The instances of state machines, live and finished.
create view perdure.v1_instances as
select
  -- uuid. The id.
  i.id,
  -- text. The state machine.
  i.fsm as machine,
  -- integer. The version of the state machine.
  i.version,
  -- text. The current step, or the last one.
  i.step,
  -- text. The status: scheduled, ready, retrying, running, waiting, no_worker, done, stopped, failed, cancelled or quarantined.
  coalesce(f.status, case
    when (select true from perdure.ready r where r.queue = i.queue and r.suspect = false and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      or (select true from perdure.ready r where r.queue = i.queue and r.suspect = true and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      then case when least(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > now() then 'scheduled' else 'ready' end
    when (select true from perdure.waiting w where w.id = i.id limit 1) then 'waiting'
    when (select true from perdure.barriers b where b.parent_id = i.id limit 1) then 'waiting'
    when (select true from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id limit 1) then 'no_worker'
    when (select true from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id limit 1) then 'waiting'
    else 'running'
  end) as status,
  -- text. The queue.
  i.queue,
  -- smallint. The priority: -1 high, 0 normal, 1 low.
  i.priority,
  -- json. The state.
  coalesce(f.state, i.state) as state,
  -- json?. The result of a finished instance.
  f.result,
  -- text?. The last error.
  coalesce(f.error, i.error) as error,
  -- integer. The failed attempts of the current step.
  least(i.failures, i.attempt) as failures,
  -- integer. The crashes of processes that ran it.
  i.crashes,
  -- uuid?. The parent, if the instance is a child.
  i.parent_id,
  -- text?. The partition key.
  i.partition_key,
  -- text?. The unique key.
  i.unique_key,
  -- timestamptz. The time when the current step is or was due.
  i.due_at,
  -- timestamptz?. The deadline of the instance.
  i.deadline_at,
  -- timestamptz. The time of the start.
  i.created_at,
  -- timestamptz?. The time when it finished.
  f.finished_at
from perdure.instances i
left join perdure.finished f on f.id = i.id;

-- The hooks of applications and the effects of actors, until retention removes them.
create view perdure.v1_hooks as
select
  -- text. The id.
  h.id,
  -- text. The namespace.
  h.namespace,
  -- text. The name of the hook.
  h.name as hook,
  -- text. The status: scheduled, ready, retrying, running, done, failed, cancelled or quarantined.
  h.status,
  -- smallint. The priority: -1 high, 0 normal, 1 low.
  h.priority,
  -- json. The payload.
  h.payload,
  -- integer. The attempts.
  h.attempts,
  -- integer. The maximum number of attempts.
  h.max_attempts,
  -- integer. The crashes of processes that ran it.
  h.crashes,
  -- text?. The last error.
  h.error,
  -- timestamptz. The time when it is or was due.
  h.due_at,
  -- timestamptz. The time when it was triggered.
  h.created_at,
  -- timestamptz?. The time of the last attempt.
  h.last_attempt_at,
  -- timestamptz?. The time when it finished.
  h.finished_at
from perdure.hooks h;

-- The alarms of applications, without the timers of actors. An alarm that has fired is
-- removed, unless it recurs.
create view perdure.v1_alarms as
select
  -- text. The id.
  a.alarm_id as alarm,
  -- text. The type of the actor that owns it, empty if there is none.
  a.actor_type,
  -- text. The id of the actor that owns it, empty if there is none.
  a.actor_id,
  -- text. The type.
  a.type,
  -- text. The status: scheduled, ready, retrying, running, failed or quarantined.
  a.status,
  -- smallint. The priority: -1 high, 0 normal, 1 low.
  a.priority::smallint as priority,
  -- json. The payload.
  a.payload,
  -- timestamptz. The time when it fires or is retried.
  a.due_at,
  -- timestamptz. The time that it is for.
  a.occurs_at as scheduled_at,
  -- integer. The failed attempts.
  a.attempts,
  -- integer. The maximum number of attempts.
  a.max_attempts,
  -- text?. The last error.
  a.error,
  -- timestamptz. The time when it was scheduled.
  a.created_at
from perdure.alarms a
where a.kind = 'alarm';

-- The actors.
create view perdure.v1_actors as
select
  -- text. The type.
  a.type as actor_type,
  -- text. The id.
  a.id as actor_id,
  -- text. The status: active, done, error, stopped or quarantined.
  a.status,
  -- json?. The state value, as in XState.
  a.value,
  -- bigint. The number of its transitions.
  a.sequence as transitions,
  -- text?. The reason of a failure or a quarantine.
  a.reason,
  -- bigint. The events from SQL that no process has handled yet.
  (select count(*) from perdure.actor_inbox b join perdure.hook_items h on h.id = b.item
    where b.actor_type = a.type and b.actor_id = a.id and not exists (select from perdure.hook_ends e where e.id = b.item)) as pending_events,
  -- timestamptz. The time when it was created.
  a.created_at,
  -- timestamptz. The time of its last transition.
  a.updated_at
from perdure.actors a;

-- The entries of the outbox, in the order of commits.
create view perdure.v1_outbox as
select
  -- text. The stamp, 24 hexadecimal digits. Later entries have greater stamps.
  encode(o.versionstamp, 'hex') as versionstamp,
  -- text. The unit of work.
  o.unit_id,
  -- json. The entry, in the stored form of the outbox.
  o.payload,
  -- timestamptz. The time of the writer's clock.
  o.created_at
from perdure.outbox o;
