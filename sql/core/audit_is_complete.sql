create function core.audit_is_complete()
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with erased as (
    -- Rows that an erasure changed, with the SHA-256 that the last erasure recorded.
    select distinct on (r.key) r.key::bigint as id, decode(r.value, 'hex') as sha256
    from app.audit e
    cross join jsonb_each_text(e.after -> 'audit') r
    where e.action = 'erase_person' and jsonb_typeof(e.after -> 'audit') = 'object'
    order by r.key, e.id desc
  ),
  sealed as (
    select a.seal_id, count(*) as rows, string_agg(a.sha256, '' order by a.id) as hashes,
      bool_and(core.audit_sha256(a) = coalesce(e.sha256, a.sha256)) as is_unchanged
    from app.audit a
    left join erased e on e.id = a.id
    where a.seal_id is not null
    group by a.seal_id
  ),
  seal as (
    select s.*, coalesce(lag(s.sha256) over (order by s.id), '') as previous, row_number() over (order by s.id) as place
    from app.audit_seals s
  )
  select coalesce((
      -- A seal whose rows are all missing gives null, which bool_and would ignore.
      select bool_and(coalesce(s.id = s.place and x.rows = s.rows and x.is_unchanged
        and s.sha256 = core.seal_sha256(s.previous, s.id, s.sealed_at, s.rows, x.hashes), false))
      from seal s
      left join sealed x on x.seal_id = s.id), true)
    and (select (c.seals, c.sha256) = (
        coalesce((select max(s.id) from app.audit_seals s), 0),
        coalesce((select s.sha256 from app.audit_seals s order by s.id desc limit 1), ''))
      from app.audit_chain c) is true
$$;

comment on function core.audit_is_complete is
  'Returns whether every sealed row of the audit and every seal is unchanged. A row that an erasure changed is compared with the SHA-256 that the erasure recorded.';
