create function core.erase_tags(person text)
returns integer
language plpgsql volatile
as $$
#variable_conflict use_column
declare
  v_rows integer;
begin
  -- Sums are added to under this lock; the clock passes them over meanwhile.
  perform pg_advisory_xact_lock(hashtextextended('postgram reports', 0));
  with named as (
    delete from app.daily_volume v
    where strpos(lower(v.tag), ltrim(person, '+')) > 0 and core.unnamed(v.tag, person) <> v.tag
    returning v.*
  ),
  unnamed as (
    select n.day, n.organisation_id, n.channel, n.class, core.unnamed(n.tag, person) as tag,
      sum(n.accepted), sum(n.sent), sum(n.delivered), sum(n.bounced), sum(n.complained), sum(n.failed),
      sum(n.expired), sum(n.rejected)
    from named n
    group by n.day, n.organisation_id, n.channel, n.class, core.unnamed(n.tag, person)
  ),
  -- Added to what is there of somebody else's tag, who was erased before.
  added as (
    select core.add_volume(array_agg(u::app.daily_volume)) from unnamed u
  )
  -- Of what is added nothing is read, but unless it is named here it would not be done.
  select count(n.day) into v_rows from added left join named n on true;
  return v_rows;
end
$$;

comment on function core.erase_tags is
  'Take a person out of the tags by which messages are counted; what was counted stays. Answers how many rows.';
