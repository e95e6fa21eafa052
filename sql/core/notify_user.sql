create function core.notify_user(email text, organisation_id uuid, kind text, detail jsonb)
returns void
language plpgsql volatile
as $$
declare
  v_id uuid := core.new_id(core.now());
begin
  insert into app.notices (id, organisation_id, email, kind, detail, created_at)
  values (v_id, notify_user.organisation_id, notify_user.email, notify_user.kind::app.notice_kind, notify_user.detail, core.now());
  perform core.add_jobs(array[(
    'notify_user', json_build_object('id', v_id), null, null, null, null, -1, null
  )::graphile_worker.job_spec]);
end
$$;

comment on function core.notify_user is
  'Send a notice to a user of the dashboard, by a task that only workers run which know its kind. organisation_id is null for a link that signs in. src/notifications/notices.ts has the text of each kind.';
