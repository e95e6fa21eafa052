create function core.record_status_changes(changes core.message_change[])
returns void
language plpgsql volatile
as $$
begin
  insert into app.status_changes (message_ids, change, occurred_at)
  select array_agg(c.message_id), c.change, core.now()
  from unnest(changes) with ordinality as c (message_id, organisation_id, change, place)
  where c.change in ('queued', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'expired', 'rejected')
  group by c.change, c.place / 100;
end
$$;

comment on function core.record_status_changes is 'Store changes of live messages for the reports, which api.sum_status_changes counts.';
