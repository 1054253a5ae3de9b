-- Receipts of outcomes, on SQLite. A set is passed as JSON.

-- name: ReceiptInsert
insert into perdure.receipts (token, digest, created_at)
select o.value ->> 0, o.value ->> 1, ?2
from json_each(?1) as o
where true
on conflict do nothing

-- name: ReceiptList
select token, digest
from perdure.receipts
where token in (select o.value from json_each(?) as o)
