create view ops.division as
select d.number, d.name, d.begun_at,
  array(select core.encode_id('org', i) from unnest(d.organisation_ids) i order by i) as organisations,
  case when pg_is_in_recovery() then null else core.is_copy(d) end as is_copy
from app.division d;

comment on view ops.division is
  'The division of this cell that has begun; no row if there is none. A standby that shows it has everything that was committed before.';

comment on column ops.division.number is 'The number that the copy gets.';
comment on column ops.division.name is 'The name that the copy gets.';
comment on column ops.division.begun_at is 'When it began.';
comment on column ops.division.organisations is 'The organisations that move to the copy.';
comment on column ops.division.is_copy is
  'Whether this database is the copy, or a failover has happened since the division began; null on a standby.';
