create function core.count_named_bounces(emails core.judged_email[], at timestamptz)
returns void
language plpgsql volatile
as $$
begin
  insert into app.named_bounces as b (organisation_id, hour, addresses, exceeded_at)
  select e.organisation_id, date_trunc('hour', count_named_bounces.at, 'UTC'), sum(e.foreign_addresses),
    max(count_named_bounces.at) filter (where e.is_beyond)
  from unnest(emails) e
  group by e.organisation_id
  having sum(e.foreign_addresses) > 0
  on conflict (organisation_id) do update set
    hour = excluded.hour,
    addresses = excluded.addresses + case when b.hour = excluded.hour then b.addresses else 0 end,
    exceeded_at = coalesce(excluded.exceeded_at, b.exceeded_at);
end
$$;

comment on function core.count_named_bounces is
  'Count, for each organisation and hour, the addresses that refusals named because they bounced for other organisations.';
