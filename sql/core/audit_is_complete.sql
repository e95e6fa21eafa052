create function core.audit_is_complete(after_seal bigint default 0)
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
-- Rows are found by their seal, a thousand at a time, which needs no temporary file.
set enable_seqscan = off
set jit = off
as $$
  with erased as materialized (
    -- Rows that an erasure changed, with the SHA-256 that the last erasure recorded. An erasure is a later row than
    -- these. "offset 0" keeps the planner from looking for the lowest ID by the primary key.
    select jsonb_object_agg(r.key, r.value order by e.id) as hashes
    from app.audit e
    cross join jsonb_each_text(e.after -> 'audit') r
    where e.id > (select min(x.id) from (select a.id from app.audit a where a.seal_id > after_seal offset 0) x)
      and e.action = 'erase_person' and jsonb_typeof(e.after -> 'audit') = 'object'
  ),
  seal as (
    select s.*, lag(s.sha256, 1, '') over (order by s.id) as previous, lag(s.id, 1, 0) over (order by s.id) as previous_id
    from app.audit_seals s
    where s.id >= after_seal
  )
  select coalesce((
      -- A seal whose rows are all missing gives null, which bool_and would ignore.
      select bool_and(coalesce(s.id = s.previous_id + 1 and x.rows = s.rows and x.is_unchanged
        and s.sha256 = core.seal_sha256(s.previous, s.id, s.sealed_at, s.rows, x.hashes), false))
      from seal s
      cross join lateral (
        select count(*) as rows, string_agg(a.sha256, '' order by a.id) as hashes,
          bool_and(core.audit_sha256(a)
            = coalesce(decode((select e.hashes from erased e) ->> a.id::text, 'hex'), a.sha256)) as is_unchanged
        from app.audit a
        where a.seal_id = s.id
      ) x
      where s.id > after_seal), true)
    and (select (c.seals, c.sha256) = (
        coalesce((select max(s.id) from app.audit_seals s), 0),
        coalesce((select s.sha256 from app.audit_seals s order by s.id desc limit 1), ''))
      from app.audit_chain c) is true
$$;

comment on function core.audit_is_complete is
  'Returns whether every row of the audit that has a seal after this one, and every such seal, is unchanged. A row that an erasure changed is compared with the SHA-256 that the erasure recorded.';
