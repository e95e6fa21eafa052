-- A transaction of its own: the requests of an organisation would wait for its count until an accept has
-- reached the disk.
create function api.admit_calls(run uuid, scope text, calls jsonb)
returns setof core.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_calls core.call_to_admit[] := array(select c from jsonb_populate_recordset(null::core.call_to_admit, calls) c);
  v_admissions core.admission[];
  v_refused integer[];
begin
  v_admissions := array(select a from core.admit(array(select c.api_key from unnest(v_calls) c)) a);
  v_refused := array(
    select c.n
    from unnest(v_calls) with ordinality as c (n, api_key, organisation_id, mode, place)
    left join unnest(v_admissions) a on a.n = c.place
      and a.retry_after is null
      and a.state <> 'suspended'
      and admit_calls.scope = any (a.scopes)
      and a.organisation_id = c.organisation_id
      and a.mode = c.mode
    where a.n is null);
  perform set_config('postgram.refused_calls', format('%s %s', run, v_refused), false);
  return query select * from unnest(v_admissions);
end
$$;

comment on function api.admit_calls is
  'Admits the keys of calls of api.accept_emails or api.accept_sms, which follows on the same connection with the same run and leaves out the calls that are not admitted. Returns what api.admit returns for their keys.';
