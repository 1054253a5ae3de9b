-- The comms tasks, whose functions are written in Go on SQLite. {channel} is email
-- or sms; now is always the last value.

-- name: CommsCreateEmail
insert into comms_message (channel, created_at) values ('email', ?6)
;
insert into comms_email_message (message_id, from_address, to_address, subject, text_body, html_body)
values (last_insert_rowid(), ?1, ?2, ?3, ?4, ?5)
returning message_id

-- name: CommsCreateSMS
insert into comms_message (channel, created_at) values ('sms', ?4)
;
insert into comms_sms_message (message_id, from_number, to_number, body)
values (last_insert_rowid(), ?1, ?2, ?3)
returning message_id

-- name: CommsKickoff
-- The message is ?1, or the message that was just created. Without a message there
-- is no send.
insert into comms_send_{channel}_task (message_id, idempotency_key, created_at)
select message_id, lower(hex(randomblob(16))), ?4
from comms_{channel}_message
where message_id = coalesce(?1, last_insert_rowid())
returning send_{channel}_task_id
;
insert into queues_task (task_type, payload, enqueued_at, scheduled_at)
values ('db_function', json_object('task_type', 'db_function', 'db_function', 'comms.send_{channel}_supervisor', 'send_{channel}_task_id', last_insert_rowid()),
  ?4, coalesce(?2, ?4 + ?3))

-- name: CommsFacts
-- Returns all facts that a supervisor needs for its decision. An attempt is over if
-- its task will not record an outcome: the task is finished, or its lease expired
-- more than a minute ago.
select t.idempotency_key, t.message_id,
  exists (select 1 from comms_send_{channel}_task_succeeded s where s.send_{channel}_task_id = t.send_{channel}_task_id),
  (select count(*) from comms_send_{channel}_task_failed f where f.send_{channel}_task_id = t.send_{channel}_task_id),
  (select count(*) from comms_send_{channel}_task_scheduled s where s.send_{channel}_task_id = t.send_{channel}_task_id),
  exists (select 1 from comms_send_{channel}_task_failed f where f.send_{channel}_task_id = t.send_{channel}_task_id and f.permanent),
  (select min(created_at) from comms_send_{channel}_task_scheduled s where s.send_{channel}_task_id = t.send_{channel}_task_id),
  coalesce(o.attempt, 0), coalesce(o.task_id, 0),
  not exists (
    select 1 from queues_task q
    where q.task_id = o.task_id and (
      q.status = 'pending' or q.status = 'processing' and q.lease_expires_at > ?2 - 60000000
    )
  )
from comms_send_{channel}_task t
left join comms_send_{channel}_task_scheduled o on o.send_{channel}_task_id = t.send_{channel}_task_id
  and not exists (select 1 from comms_send_{channel}_task_failed f where f.send_{channel}_task_id = o.send_{channel}_task_id and f.attempt = o.attempt)
  and not exists (select 1 from comms_send_{channel}_task_succeeded d where d.send_{channel}_task_id = o.send_{channel}_task_id and d.attempt = o.attempt)
where t.send_{channel}_task_id = ?1
order by o.attempt desc
limit 1

-- name: CommsSchedule
insert into comms_send_{channel}_task_scheduled (send_{channel}_task_id, attempt, task_id, created_at)
values (?1, ?2, ?3, ?4)

-- name: CommsFail
insert into comms_send_{channel}_task_failed (send_{channel}_task_id, attempt, error_message, permanent, created_at)
values (?1, ?2, ?3, ?4, ?5)
on conflict do nothing

-- name: CommsSucceed
insert into comms_send_{channel}_task_succeeded (send_{channel}_task_id, attempt, worker_payload, created_at)
values (?1, ?2, ?3, ?4)
on conflict do nothing

-- name: CommsAttempt
-- Reports whether an attempt has started, has failed, has succeeded.
select
  exists (select 1 from comms_send_{channel}_task_scheduled where send_{channel}_task_id = ?1 and attempt = ?2),
  exists (select 1 from comms_send_{channel}_task_failed where send_{channel}_task_id = ?1 and attempt = ?2),
  exists (select 1 from comms_send_{channel}_task_succeeded where send_{channel}_task_id = ?1 and attempt = ?2)

-- name: CommsEmailMessage
select json_object('from', from_address, 'to', to_address, 'subject', subject, 'text', text_body, 'html', html_body), coalesce(nullif(text_body, ''), html_body, '')
from comms_email_message
where message_id = ?1

-- name: CommsSMSMessage
select json_object('from', from_number, 'to', to_number, 'body', body), body
from comms_sms_message
where message_id = ?1
