create function api.verify_audit()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seals bigint;
  v_is_complete boolean;
begin
  -- One statement, so that both are of one moment. Rows are sealed meanwhile.
  select c.seals, core.audit_is_complete() into v_seals, v_is_complete from app.audit_chain c;
  update app.audit_chain c
  set verified_seals = v_seals, verified_at = clock_timestamp(), is_complete = v_is_complete;
  return v_seals;
end
$$;

comment on function api.verify_audit is
  'Verify the whole audit and store the result for the pages of operators. Returns the number of seals.';
