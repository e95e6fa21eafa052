create function core.export_traces(person text)
returns setof core.personal_record
language sql stable
as $$
  select 'stored response', k.organisation_id, k.key, k.created_at,
    jsonb_build_object('mode', k.mode, 'status', k.status, 'body', k.body)
  from app.idempotency_keys k
  where core.names_person(k.body, person)
  union all
  select 'webhook event', v.organisation_id, core.encode_id('evt', v.id), v.occurred_at, v.body::jsonb
  from app.webhook_events v
  join core.orphaned_events(person) o (id) on o.id = v.id
  union all
  select 'early receipt', null, e.id::text, e.received_at, e.receipt
  from app.early_receipts e
  where e.receipt ->> 'phone' = person
  union all
  select 'forwarded receipt', null, f.id::text, f.received_at, f.content
  from app.forwarded_receipts f
  where core.names_person(f.content::text, person)
  union all
  select 'sandbox', null, null, s.due_at, r.report
  from app.sandbox_reports s
  cross join lateral jsonb_path_query(s.reports, '$[*][*]') r (report)
  where core.names_person(r.report::text, person)
  union all
  select 'suppression removal', s.organisation_id, null, s.tried_at, to_jsonb(s) - 'organisation_id'
  from app.suppression_removals s
  where s.email = person
  union all
  select 'requested erasure', null, null, e.requested_at, to_jsonb(e) - 'id'
  from app.erasures e
  where e.person = export_traces.person
  union all
  select 'audit', a.organisation_id, a.id::text, a.at, to_jsonb(a) - '{id,at,organisation_id}'::text[]
  from app.audit a
  where core.names_person(concat_ws(' ', a.target, a.before, a.after), person)
$$;

comment on function core.export_traces is
  'Returns the records apart from messages that name a person (address in lower case, or number): responses for replays, webhook events that outlived their message, early and forwarded receipts, reports that the sandbox has not made yet, removals at providers, a requested erasure, the audit.';
