-- Receipts of outcomes, on PostgreSQL. A set is passed as JSON.

-- name: ReceiptInsert
insert into perdure.receipts (token, digest, created_at)
select o.value ->> 0, o.value ->> 1, coalesce($2::timestamptz, now())
from json_array_elements($1::json) as o (value)
on conflict do nothing

-- name: ReceiptList
select token, digest
from perdure.receipts
where token = any(array(select o.value from json_array_elements_text(?::json) as o (value)))
