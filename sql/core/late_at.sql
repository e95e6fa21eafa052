create function core.late_at(scheduled_at timestamptz)
returns timestamptz
language sql immutable
as $$
  select scheduled_at + interval '24 hours'
$$;

comment on function core.late_at is
  'Until when a scheduled SMS may still be sent, if something was in its way at its time; after that it is rejected.';
