create view ops.blocked_numbers as
select b.phone, b.note, b.created_at
from app.blocked_numbers b
where b.removed_at is null
  and not exists (
    select from app.blocked_numbers n
    where n.phone = b.phone and (coalesce(n.removed_at, n.created_at), n.cell) > (b.created_at, b.cell));

comment on view ops.blocked_numbers is
  'Numbers on the national opt-out registry. No organisation can send marketing SMS to them.';

comment on column ops.blocked_numbers.phone is 'The number in E.164.';
comment on column ops.blocked_numbers.note is 'The note given when the number was blocked.';
comment on column ops.blocked_numbers.created_at is 'When the number was blocked here.';
