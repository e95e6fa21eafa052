create view ops.blocked_numbers as
select b.phone, b.note, b.created_at
from app.blocked_numbers b;

comment on view ops.blocked_numbers is
  'Numbers on the national opt-out registry. They get no marketing from anybody.';

comment on column ops.blocked_numbers.phone is 'The number, in E.164.';
comment on column ops.blocked_numbers.note is 'What was noted when it was blocked.';
comment on column ops.blocked_numbers.created_at is 'When it was blocked here.';
