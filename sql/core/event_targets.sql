create function core.event_targets(changes core.message_change[])
returns core.event_target[]
language plpgsql stable
set enable_seqscan = off
as $$
declare
  v_organisations uuid[] := array(select distinct c.organisation_id from unnest(changes) c);
  v_types app.webhook_event_type[] := array(
    select unnest(array[core.event_type('email', c.change), core.event_type('sms', c.change)])
    from (select distinct u.change from unnest(changes) u) c);
begin
  return array(
    select (p.id, p.organisation_id, p.event_types, p.disabled_at is null, p.failing_since is not null)::core.event_target
    from app.webhook_endpoints p
    where p.organisation_id = any (v_organisations) and p.event_types && v_types);
end
$$;

comment on function core.event_targets is
  'Returns the endpoints of these organisations, disabled ones too, that chose the type of at least one of the changes.';
