create function api.dashboard_opt_out(session text, organisation text, phone text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.member_of(dashboard_opt_out.session, dashboard_opt_out.organisation, 'member');
  perform ops.withdraw_consent(dashboard_opt_out.organisation, dashboard_opt_out.phone);
end
$$;

comment on function api.dashboard_opt_out is
  'Opt a number out of an organisation''s marketing SMS as ops.withdraw_consent does, for a member. Refuses as core.member_of does.';
