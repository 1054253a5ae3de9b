-- Receipts of outcomes: statements of all databases. Marks such as {now ?} are explained in
-- template.go.

-- name: ReceiptPurge
delete from perdure.receipts
where token in (
  select token
  from perdure.receipts
  where created_at <= {now ?} - {us {bigint ?}}
  order by created_at
  limit ?
)
