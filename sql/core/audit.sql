create function core.audit(action text, organisation_id uuid, target text, before jsonb, after jsonb)
returns void
language sql volatile
as $$
  insert into app.audit (at, actor, login, application_name, action, organisation_id, target, before, after)
  -- Real time, even if POSTGRAM_NOW is set.
  select clock_timestamp(), core.actor(), session_user, current_setting('application_name'),
    audit.action, audit.organisation_id, audit.target, audit.before, audit.after
  where audit.before is distinct from audit.after
$$;

comment on function core.audit is
  'Write a row to the audit in the transaction of the change: action, organisation, target, and the changed values before and after. Writes no row if before equals after.';
