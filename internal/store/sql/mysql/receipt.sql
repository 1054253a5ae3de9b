-- Receipts of outcomes, on MySQL. A set is passed as JSON.

-- name: ReceiptInsert
insert into perdure.receipts (token, digest, created_at)
select o.token, o.digest, coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
from json_table(?1, '$[*]' columns (token varchar(140) collate {collation} path '$[0]', digest varchar(64) collate {collation} path '$[1]')) o
on duplicate key update token = perdure.receipts.token

-- name: ReceiptList
select r.token, r.digest
from json_table(?1, '$[*]' columns (token varchar(140) collate {collation} path '$')) o
straight_join perdure.receipts r force index (primary) on r.token = o.token

-- name: ReceiptPurge
delete from perdure.receipts
where created_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by created_at
limit ?3
