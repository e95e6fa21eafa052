create function core.notify_owner(organisation_id uuid, kind text, detail jsonb)
returns uuid
language plpgsql volatile
as $$
declare
  v_id uuid := core.new_id(core.now());
begin
  insert into app.notices (id, organisation_id, kind, detail, created_at)
  values (v_id, organisation_id, kind::app.notice_kind, detail, core.now());
  perform core.add_jobs(array[(
    'notify_owner', json_build_object('id', v_id), null, null, null, null, null, null
  )::graphile_worker.job_spec]);
  return v_id;
end
$$;

comment on function core.notify_owner is
  'Send a notice to an organisation''s owner. src/notifications/notices.ts has the text of each kind. Returns the ID of the notice.';
