create view ops.blocked_numbers as
select b.phone, b.note, b.created_at
from app.blocked_numbers b;

comment on view ops.blocked_numbers is 'Numbers on the national opt-out registry, which get no marketing from anybody.';
