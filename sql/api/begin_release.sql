create function api.begin_release(id uuid)
returns setof api.domain_work
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with begun as (
    update app.domains d
    set change = 'removing', change_since = core.now()
    where d.id = begin_release.id and d.organisation_id is null
      and core.is_under_way(d.change_since) is not true
    returning d.*
  )
  select w.*
  from begun b
  cross join lateral jsonb_populate_record(null::api.domain_work, core.domain_work(b::app.domains)) w
$$;

comment on function api.begin_release is
  'Start the removal of a released domain''s identity at the provider; end_release ends it. Returns no row if the domain is gone or another process removes it.';
