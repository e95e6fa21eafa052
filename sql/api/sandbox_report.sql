create function api.sandbox_report()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind text;
  v_count integer;
  v_reports jsonb;
begin
  -- One kind at a time, because each locks its rows in an order of its own.
  select s.kind into v_kind
  from app.sandbox_reports s
  where s.due_at <= clock_timestamp()
  order by s.due_at
  limit 1
  for update skip locked;
  if v_kind is null then
    return 0;
  end if;

  with due as (
    delete from app.sandbox_reports s
    where s.id = any (array(
      select d.id
      from app.sandbox_reports d
      where d.due_at <= clock_timestamp() and d.kind = v_kind
      order by d.due_at
      -- Of at most 100 messages each.
      limit 10
      for update skip locked))
    returning s.due_at, s.reports
  )
  select count(*) filter (where r.place = 1), jsonb_agg(r.report || jsonb_build_object(
      case v_kind when 'reply' then 'received_at' else 'occurred_at' end,
      -- The order within a message is the order of its reports.
      core.now() + r.place * interval '1 millisecond') order by d.due_at)
    into v_count, v_reports
  from due d
  cross join lateral jsonb_array_elements(d.reports) as m (reports)
  cross join lateral jsonb_array_elements(m.reports) with ordinality as r (report, place);

  case v_kind
    when 'email' then perform core.record_receipts(v_reports);
    when 'sms' then perform core.record_sms_receipts(v_reports);
    when 'reply' then perform core.record_inbound(v_reports);
  end case;
  return v_count;
end
$$;

comment on function api.sandbox_report is
  'Record the receipts of the sandbox network and the replies of its phones that are due. Returns on how many messages, at most 1 000.';
