create function core.audit(action text, organisation_id uuid, target text, before jsonb, after jsonb)
returns void
language sql volatile
as $$
  insert into app.audit (at, actor, login, application_name, action, organisation_id, target, before, after)
  -- Real time, whatever POSTGRAM_NOW says.
  select clock_timestamp(),
    case current_setting('role')
      when 'postgram_service' then 'service'
      when 'none' then session_user
      else format('%s as %s', session_user, current_setting('role'))
    end,
    session_user, current_setting('application_name'), audit.action, audit.organisation_id, audit.target, audit.before, audit.after
  where audit.before is distinct from audit.after
$$;

comment on function core.audit is
  'Note who changes what, in the transaction of the change: the action, its organisation, what it is done to, and of that what was there before and what is there now. A call that changes nothing leaves no row.';
