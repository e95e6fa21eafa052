create function core.take_bars(person text, organisation_id uuid, bars app.erased_bar[])
returns app.erased_bar[]
language sql volatile
as $$
  with taken as (
    delete from app.erased_people e
    where e.sha256 = (select core.person_sha256(person, s.salt) from app.person_salt s)
      and (take_bars.organisation_id is null or e.organisation_id = take_bars.organisation_id)
      and e.bar = any (bars)
    returning e.bar
  )
  select coalesce(array_agg(t.bar), '{}') from taken t
$$;

comment on function core.take_bars is
  'Lift what stands against an erased address or number for an organisation, or with null for any. Answers what that was.';
