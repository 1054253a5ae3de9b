-- name: OutboxAppend
-- Reserves numbers and inserts the entries of a whole group in one statement.
-- COMMIT can follow immediately, and the counter is not locked during a round trip.
-- Without a clock, or with a counter that overflows, the statement fails.
with clock as (
  update perdure.outbox_clock
  set counter = counter + ?
  where id = 1
  returning substring(int4send(incarnation) from 3) as incarnation, counter - ? as before
)
insert into perdure.outbox (versionstamp, unit_id, payload, ref_map, created_at)
select
  incarnation || int8send(before + place) || '\x0000'::bytea,
  unit_id,
  replace(payload, nonce, encode(incarnation || int8send(before + place), 'hex'))::json,
  ref_map::json,
  ?
from unnest(?::text[], ?::text[], ?::text[], ?::text[]) with ordinality as entry (unit_id, payload, nonce, ref_map, place)
left join clock on true

-- name: CounterGuard
-- Ends the session if its client is silent for 4 s before it commits. A shorter limit of the
-- client stays.
select set_config('idle_in_transaction_session_timeout',
  case
    when current_setting('idle_in_transaction_session_timeout')::interval between interval '1 millisecond' and interval '4 seconds'
      then current_setting('idle_in_transaction_session_timeout')
    else '4s'
  end, true)
