create function core.move_out(organisation_ids uuid[], cell smallint, out api_keys bigint, out messages bigint)
language plpgsql volatile
as $$
declare
  v_users uuid[];
begin
  insert into app.moved_organisations (organisation_id, cell, moved_at, endpoint_ids, numbers)
  select o.id, move_out.cell, core.now(),
    array(select p.id from app.webhook_endpoints p where p.organisation_id = o.id order by p.id),
    array(select s.sender from app.senders s where s.organisation_id = o.id and s.sender like '+%' order by s.sender)
  from app.organisations o
  where o.id = any (organisation_ids);

  -- What would act: keys, jobs, waiting messages, deliveries, notices.
  delete from app.api_keys k where k.organisation_id = any (organisation_ids);
  get diagnostics api_keys = row_count;
  messages := core.leave_owned_jobs(organisation_ids);
  messages := messages + (select count(*) from app.due_messages d where d.organisation_id = any (organisation_ids));
  delete from app.due_messages d where d.organisation_id = any (organisation_ids);
  delete from app.notices n where n.organisation_id = any (organisation_ids);
  delete from app.suppression_removals s where s.organisation_id = any (organisation_ids);
  -- The clock deletes the waiting deliveries, of which there may be a million (api.clear_deliveries).
  delete from app.webhook_endpoints p where p.organisation_id = any (organisation_ids);

  -- The other cell goes on with the identities at the provider, so nothing is removed there.
  delete from app.name_claims c
  using app.domains d
  where d.name = c.name and d.organisation_id = any (organisation_ids) and c.cell = core.cell_number();
  delete from app.domain_claims c where c.organisation_id = any (organisation_ids);
  delete from app.domains d where d.organisation_id = any (organisation_ids);
  delete from app.senders s where s.organisation_id = any (organisation_ids);
  delete from app.template_versions v
  using app.templates t
  where t.id = v.template_id and t.organisation_id = any (organisation_ids);
  delete from app.templates t where t.organisation_id = any (organisation_ids);

  update app.sessions s set viewed_organisation_id = null where s.viewed_organisation_id = any (organisation_ids);
  with gone as (
    delete from app.members m where m.organisation_id = any (organisation_ids) returning m.user_id
  )
  select array_agg(distinct g.user_id) into v_users from gone g;
  perform core.delete_user_without_role(u) from unnest(v_users) u;

  -- Without these rows nothing is accepted, and ops.organisations does not show the organisation.
  delete from app.allowances a where a.organisation_id = any (organisation_ids);
  delete from app.counters c where c.organisation_id = any (organisation_ids);
  update app.organisations o
  set suspended_at = core.now(), suspension_reason = format('moved to cell %s', move_out.cell)
  where o.id = any (organisation_ids);
end
$$;

comment on function core.move_out is
  'Let these organisations go to another cell: delete what would act for them here, and suspend them. The clock deletes their messages and the rest (api.purge_moved). Returns how many API keys were deleted, and how many waiting messages are left to the other cell.';
