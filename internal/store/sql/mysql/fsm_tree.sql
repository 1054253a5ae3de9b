-- Ending trees of instances, one set at a time, on MySQL. Selects here do not wait for
-- locks: they skip locked rows, which a later pass reads. The rows of a subquery are not
-- locked.

-- name: TreeInsert
-- An existing row moves to the end: the rows of one parent are handled in their order.
replace into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select o.parent, o.first_fanout, o.last_fanout, o.kind, o.root, o.reason, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) + interval ?1 microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (
  parent varchar(36) path '$[0]', first_fanout int path '$[1]', last_fanout int path '$[2]', kind varchar(16) path '$[3]', root varchar(36) path '$[4]', reason longtext path '$[5]'
)) o

-- name: TreeTake
-- Returns rows of any tree. The last two columns: the parent exists and is unfinished; an
-- earlier row of the same parent must be handled first.
select t.seq, t.parent_id, t.first_fanout, t.last_fanout, t.kind, t.root_id, t.reason, t.after_fanout is not null,
  (select 1 from perdure.instances p where p.id = t.parent_id) is not null and (select 1 from perdure.finished f where f.id = t.parent_id) is null,
  (select 1 from perdure.tree_ends x where x.parent_id = t.parent_id and x.seq < t.seq limit 1) is not null
from perdure.tree_ends t
order by t.seq
limit ?1
for update skip locked

-- name: TreeTakeOf
-- Returns the rows of one tree, and the rows of other trees that must be handled before
-- them.
select t.seq, t.parent_id, t.first_fanout, t.last_fanout, t.kind, t.root_id, t.reason, t.after_fanout is not null,
  (select 1 from perdure.instances p where p.id = t.parent_id) is not null and (select 1 from perdure.finished f where f.id = t.parent_id) is null,
  (select 1 from perdure.tree_ends x where x.parent_id = t.parent_id and x.seq < t.seq limit 1) is not null
from (
  select distinct y.seq
  from perdure.tree_ends of_root
  straight_join perdure.tree_ends y on y.parent_id = of_root.parent_id
  where of_root.root_id = ?1
  order by y.seq
  limit 10000
) o
straight_join perdure.tree_ends t force index (primary) on t.seq = o.seq
limit ?2
for update skip locked

-- name: TreeAdvance
-- Stores the child that the pass has reached, or restarts the pass.
update json_table(?3, '$[*]' columns (seq bigint path '$[0]', fanout int path '$[1]', ordinal int path '$[2]')) o
straight_join perdure.tree_ends t force index (primary) on t.seq = o.seq
set t.after_fanout = o.fanout, t.after_ordinal = o.ordinal, t.due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) + interval ?2 microsecond

-- name: TreeDelete
delete t
from json_table(?1, '$[*]' columns (seq bigint path '$[0]')) o
straight_join perdure.tree_ends t force index (primary) on t.seq = o.seq

-- name: TreeLive
-- Returns the unfinished children of rows, in the order of their passes. A child that runs
-- its cancel step is skipped. A child of a fan-out that the parent cancelled belongs to the
-- row of that fan-out.
select c.seq, c.id, c.parent_fanout, c.ordinal
from (
{each ?1}
  (
    select t.seq, i.id, i.parent_fanout, i.ordinal
    from perdure.tree_ends t
    straight_join perdure.instances i force index (instances_parent_idx) on i.parent_id = t.parent_id
    where t.seq = ?1
      and i.parent_fanout >= coalesce(t.after_fanout, -2147483647)
      and (i.parent_fanout > coalesce(t.after_fanout, -2147483647) or i.ordinal > coalesce(t.after_ordinal, -1))
      and abs(i.parent_fanout) between t.first_fanout and t.last_fanout and i.cancel_reason is null
      and (select 1 from perdure.finished f where f.id = i.id) is null
      and (t.kind = 'cancel' or (
        select 1
        from perdure.tree_ends given
        where given.parent_id = t.parent_id and given.kind = 'cancel' and abs(i.parent_fanout) between given.first_fanout and given.last_fanout
        limit 1
      ) is null)
    order by i.parent_fanout, i.ordinal
    limit ?2
  )
{end}
) c
order by c.seq, c.parent_fanout, c.ordinal
limit ?2

-- name: DeadlineTake
select d.id
from perdure.deadlines d force index (primary)
left join json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) failed on failed.id = d.id
where d.at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) and failed.id is null
order by d.at
limit ?3

-- name: LeaseTakeMany
-- Leases are locked before instances, as outcomes lock them.
select l.token
from (
  select distinct x.token
  from perdure.leases x
  straight_join json_table(x.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
  straight_join (select chosen.id from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen limit 1000000000) o on o.id = held.id
  order by x.token
  limit 1000000000
) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token
for update skip locked

-- name: InstanceTakeMany
select i.id
from (
  select chosen.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.id
  limit 1000000000
) o
straight_join perdure.instances i force index (primary) on i.id = o.id
for update skip locked

-- name: InstanceEndsMany
-- Returns the columns that are needed to finish instances, which are locked.
select i.id, i.step, i.attempt, i.crashes, i.fanout, i.parent_id, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at,
  i.queue, i.awaits, i.seen, i.cancel_reason, (select d.cancel_step from perdure.definitions d where d.fsm = i.fsm and d.version = i.version)
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
lock in share mode

-- name: PartitionTakeMany
select h.`key`
from (
  select chosen.name
  from json_table(?1, '$[*]' columns (name varchar(512) collate {collation} path '$[0]')) chosen
  order by chosen.name
  limit 1000000000
) o
straight_join perdure.partition_heads h force index (primary) on h.`key` = o.name
for update skip locked

-- name: BarrierSeeMany
select b.parent_id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id

-- name: BarrierTakeMany
select b.parent_id
from (
  select chosen.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.id
  limit 1000000000
) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
for update skip locked

-- name: ReadyRemoveMany
-- Both values of suspect are listed, because the index is not used after a condition with
-- two.
select json_arrayagg(json_array(gone.queue, gone.suspect, gone.priority, gone.due_at, gone.id)) into @perdure_gone
from (
  select r.queue, r.suspect, r.priority, r.due_at, r.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.instances i force index (primary) on i.id = o.id
  straight_join (select 0 as suspect union all select 1) s
  straight_join perdure.ready r force index (primary) on r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
  for update skip locked
) gone
;
delete r
from json_table(@perdure_gone, '$[*]' columns (queue varchar(300) collate {collation} path '$[0]', suspect tinyint path '$[1]', priority smallint path '$[2]', due_at datetime(6) path '$[3]', id varchar(36) collate {collation} path '$[4]')) o
straight_join perdure.ready r force index (primary) on r.queue = o.queue and r.suspect = o.suspect and r.priority = o.priority and r.due_at = o.due_at and r.id = o.id
;
select o.id
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) path '$[4]')) o

-- name: WaitingRemoveMany
-- The instances record what they waited for, and the rest of their wait.
select json_arrayagg(json_array(gone.id, timestampdiff(microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), gone.deadline_at))) into @perdure_gone
from (
  select w.id, w.deadline_at
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.waiting w force index (primary) on w.id = o.id
  for update skip locked
) gone
;
update json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', remaining bigint path '$[1]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.wait = concat('{"for":"signals","left":', coalesce(o.remaining, 'null'), '}')
;
delete w
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.waiting w force index (primary) on w.id = o.id
;
select o.id
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) path '$[0]')) o

-- name: BarrierRemoveMany
select json_arrayagg(json_array(gone.parent_id, gone.until, gone.cancel_rest, timestampdiff(microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), gone.deadline_at))) into @perdure_gone
from (
  select b.parent_id, b.until, b.cancel_rest, b.deadline_at
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
  for update skip locked
) gone
;
update json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', until int path '$[1]', cancel_rest tinyint path '$[2]', remaining bigint path '$[3]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.wait = concat('{"for":"children","until":', o.until, ',"rest":', case when o.cancel_rest = 1 then 'true' else 'false' end, ',"left":', coalesce(o.remaining, 'null'), '}')
;
delete b
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
;
select o.id
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) path '$[0]')) o

-- name: UnroutedRemoveMany
select json_arrayagg(json_array(gone.queue, gone.fsm, gone.version, gone.step, gone.id)) into @perdure_gone
from (
  select u.queue, u.fsm, u.version, u.step, u.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.instances i force index (primary) on i.id = o.id
  straight_join perdure.unrouted u force index (primary) on u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id
  for update skip locked
) gone
;
delete u
from json_table(@perdure_gone, '$[*]' columns (queue varchar(300) collate {collation} path '$[0]', fsm varchar(128) collate {collation} path '$[1]', version int path '$[2]', step varchar(128) collate {collation} path '$[3]', id varchar(36) collate {collation} path '$[4]')) o
straight_join perdure.unrouted u force index (primary) on u.queue = o.queue and u.fsm = o.fsm and u.version = o.version and u.step = o.step and u.id = o.id
;
select o.id
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) path '$[4]')) o

-- name: PartitionRemoveMany
select json_arrayagg(gone.id) into @perdure_gone
from (
  select p.id
  from json_table(?1, '$[*]' columns (name varchar(512) collate {collation} path '$[0]', id varchar(36) collate {collation} path '$[1]')) o
  straight_join perdure.partition_waiting p force index (partition_waiting_id_key) on p.id = o.id
  where p.`key` = o.name
  for update skip locked
) gone
;
delete p
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.partition_waiting p force index (partition_waiting_id_key) on p.id = o.id
;
select o.id
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o

-- name: HeldMany
-- Returns the leases that hold instances that are in no other place, the newest lease
-- first. One snapshot is required: while a claim is being committed, its instance is still
-- ready.
select i.id, l.token
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join (select chosen.id from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen limit 1000000000) o on o.id = held.id
straight_join perdure.instances i force index (primary) on i.id = o.id
left join perdure.finished f on f.id = i.id
left join perdure.ready r on r.queue = i.queue and r.suspect = 0 and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
left join perdure.ready s on s.queue = i.queue and s.suspect = 1 and s.priority = i.priority and s.due_at = i.due_at and s.id = i.id
left join perdure.waiting w on w.id = i.id
left join perdure.barriers b on b.parent_id = i.id
left join perdure.unrouted u on u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step = '' and u.id = i.id
left join perdure.unrouted v on v.queue = i.queue and v.fsm = i.fsm and v.version = i.version and v.step = i.step and v.id = i.id
left join perdure.partition_heads h on h.`key` = i.partition_key and h.head <> i.id
where f.id is null and r.id is null and s.id is null and w.id is null and b.parent_id is null and u.id is null and v.id is null and h.`key` is null
order by l.seq desc

-- name: FinishedMany
select f.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.finished f force index (primary) on f.id = o.id
lock in share mode

-- name: InterruptMany
insert into perdure.interrupts (id, token)
select o.id, o.token
from json_table(?1, '$[*]' columns (id varchar(36) path '$[0]', token varchar(36) path '$[1]')) o
on duplicate key update id = perdure.interrupts.id
