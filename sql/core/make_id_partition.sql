create function core.make_id_partition(parent text, span_from timestamptz, span interval, pattern text)
returns integer
language plpgsql volatile
-- A month or a day added to a time is one of the session's time zone.
set timezone = 'UTC'
as $$
begin
  -- Of days that lie in a month which was made whole by a version that did so there are none.
  if to_regclass(format('app.%I', parent || to_char(span_from, '_YYYY_MM'))) is not null then
    return 0;
  end if;
  return core.make_partition(parent, core.first_id_at(span_from)::text, core.first_id_at(span_from + span)::text,
    parent || to_char(span_from, pattern));
end
$$;

comment on function core.make_id_partition is
  'Make the partition of a month or a day, by its pattern, of a table partitioned by UUIDv7; answers how many were made.';
