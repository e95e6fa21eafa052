create function ops.resume(organisation text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.set_state('resume', organisation);
begin
  -- Includes complaints that were received after this transaction began.
  update app.organisations o
  set complaints_since = greatest(core.now(),
    (select max(c.received_at) from app.complaints c where c.organisation_id = v_organisation))
  where o.id = v_organisation;
  return core.release_held(v_organisation);
end
$$;

comment on function ops.resume is
  'End the pause of an organisation and send the waiting messages. Complaints from before do not pause it again. A suspension stays in effect. Returns the number of messages that were waiting.';
