create function core.make_id_partition(parent text, span_from timestamptz, span interval, pattern text)
returns integer
language plpgsql volatile
-- An interval of a month or a day depends on the session's time zone.
set timezone = 'UTC'
as $$
begin
  -- No daily partitions within a month that has a partition of its own.
  if to_regclass(format('app.%I', parent || to_char(span_from, '_YYYY_MM'))) is not null then
    return 0;
  end if;
  return core.make_partition(parent, core.first_id_at(span_from)::text, core.first_id_at(span_from + span)::text,
    parent || to_char(span_from, pattern));
end
$$;

comment on function core.make_id_partition is
  'Create the partition for a month or a day of a table partitioned by UUIDv7. pattern formats the suffix of its name. Returns the number of partitions created, 0 or 1.';
