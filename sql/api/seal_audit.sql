create function api.seal_audit()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last app.audit_chain;
  v_at constant timestamptz := clock_timestamp();
  v_rows integer;
begin
  select c.* into v_last from app.audit_chain c for update;
  with unsealed as (
    select a.id from app.audit a where a.seal_id is null order by a.id limit 1000 for update
  ),
  sealed as (
    update app.audit a
    set seal_id = v_last.seals + 1, sha256 = core.audit_sha256(a)
    from unsealed u
    where a.id = u.id
    returning a.id, a.sha256
  ),
  seal as (
    insert into app.audit_seals (id, sealed_at, rows, sha256)
    select v_last.seals + 1, v_at, s.rows, core.seal_sha256(v_last.sha256, v_last.seals + 1, v_at, s.rows, s.hashes)
    from (select count(*) as rows, string_agg(x.sha256, '' order by x.id) as hashes from sealed x) s
    where s.rows > 0
    returning *
  ),
  chain as (
    update app.audit_chain c set seals = s.id, sha256 = s.sha256 from seal s
  )
  select s.rows into v_rows from seal s;
  return coalesce(v_rows, 0);
end
$$;

comment on function api.seal_audit is
  'Seal the unsealed rows of the audit, at most 1,000. A row that commits later gets a later seal. Returns the number of rows.';
