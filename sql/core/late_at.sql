create function core.late_at(scheduled_at timestamptz)
returns timestamptz
-- Stable, as the addition of an interval is: else Postgres would call the function for each row.
language sql stable
as $$
  select scheduled_at + interval '24 hours'
$$;

comment on function core.late_at is
  'Returns until when a scheduled SMS may be sent if something delayed it; after that it is rejected.';
