-- Wake-ups between processes, and the ends of joined transactions. MySQL has neither
-- notifications nor transaction ids that every user can read.
-- MySQL commits with every DDL statement: each one can run again.

-- Counters of notifications. Each notification increments one of the rows, and the other
-- processes read the sum.
create table if not exists perdure_wakes (
  id smallint primary key,
  seq bigint not null default 0
) engine=InnoDB;

insert ignore into perdure_wakes (id) values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);

-- Rows that joined transactions lock in share mode until they end. They never change.
create table if not exists perdure_joins (
  slot smallint primary key
) engine=InnoDB;

insert ignore into perdure_joins (slot)
select a.id * 64 + b.id * 4 + c.id
from perdure_wakes a
join perdure_wakes b
join perdure_wakes c on c.id < 4;
