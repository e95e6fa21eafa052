create function core.erase_tags(person text)
returns integer
language plpgsql volatile
as $$
declare
  v_named app.daily_volume[];
begin
  -- api.sum_status_changes adds to the sums under this lock, and skips its run while it is taken.
  perform pg_advisory_xact_lock(hashtextextended('postgram reports', 0));
  with named as (
    delete from app.daily_volume v
    where core.names_person(v.tag, person)
    returning v.*
  )
  select array_agg(n::app.daily_volume) into v_named from named n;

  -- Add the counts to those of the redacted tag, which may be there for another person who was erased.
  perform core.add_volume(array(
    select row(
      n.day, n.organisation_id, n.channel, n.class, core.redact(n.tag, person),
      sum(n.accepted), sum(n.sent), sum(n.delivered), sum(n.bounced), sum(n.complained), sum(n.failed),
      sum(n.expired), sum(n.rejected), sum(n.units))::app.daily_volume
    from unnest(v_named) n
    group by n.day, n.organisation_id, n.channel, n.class, core.redact(n.tag, person)));
  return coalesce(cardinality(v_named), 0);
end
$$;

comment on function core.erase_tags is
  'Redact a person in the tags by which messages are counted; the counts stay. Returns how many rows.';
