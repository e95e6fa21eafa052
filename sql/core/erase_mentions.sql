create function core.erase_mentions(person text, ids uuid[])
returns integer
language plpgsql volatile
as $$
declare
  v_place record;
  v_rows integer;
  v_total integer := 0;
begin
  update app.messages m
  set tags = array(
      select core.redact(g.tag, person) from unnest(m.tags) with ordinality as g (tag, place) order by g.place),
    -- A message that still waits for another recipient is sent as it was accepted.
    subject = case when m.status in ('queued', 'scheduled') then m.subject else core.redact(m.subject, person) end,
    error_message = core.redact(m.error_message, person)
  where m.id = any (ids);
  get diagnostics v_total = row_count;
  update app.bodies b
  set html = core.redact(b.html, person), text = core.redact(b.text, person),
    headers = core.redact(b.headers::text, person)::jsonb
  from app.messages m
  where b.message_id = any (ids) and m.id = b.message_id and m.status not in ('queued', 'scheduled');

  -- Every other column that may name a person, each redacted in the same way.
  for v_place in
    select p.* from (values
      ('app.idempotency_keys', 'key', 'text'),
      ('app.idempotency_keys', 'body', 'text'),
      ('app.suppressions', 'note', 'text'),
      ('app.hard_bounces', 'note', 'text'),
      ('app.blocked_numbers', 'note', 'text'),
      ('app.consents', 'source', 'text'),
      ('app.consents', 'opted_out_by', 'text'),
      ('app.credit_ledger', 'note', 'text'),
      ('app.organisations', 'pause_reason', 'text'),
      ('app.organisations', 'suspension_reason', 'text'),
      ('app.templates', 'name', 'text'),
      ('app.templates', 'subject', 'text'),
      ('app.templates', 'html', 'text'),
      ('app.templates', 'text', 'text'),
      ('app.template_versions', 'name', 'text'),
      ('app.template_versions', 'subject', 'text'),
      ('app.template_versions', 'html', 'text'),
      ('app.template_versions', 'text', 'text'),
      ('app.events', 'provider_event_id', 'text'),
      ('app.events', 'detail', 'jsonb'),
      ('app.early_receipts', 'receipt', 'jsonb'),
      ('app.callback_tokens', 'provider_event_id', 'text'),
      ('app.webhook_events', 'body', 'text'),
      ('app.webhook_attempts', 'error', 'text'),
      ('app.webhook_attempts', 'response', 'text'),
      ('app.webhook_endpoints', 'last_error', 'text'),
      ('app.webhook_endpoints', 'disabled_reason', 'text'),
      ('app.daily_bounces', 'reason', 'text'),
      ('app.notices', 'detail', 'jsonb'),
      ('app.notices', 'error_message', 'text'),
      ('app.provider_health', 'last_error', 'text'),
      ('app.task_runs', 'error', 'text'),
      ('graphile_worker._private_jobs', 'last_error', 'text')
    ) as p (name, place, type)
  loop
    execute format(
      'update %s x set %I = core.redact(x.%2$I::text, $1)::%s where core.names_person(x.%2$I::text, $1)',
      v_place.name, v_place.place, v_place.type) using person;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
  end loop;
  return v_total;
end
$$;

comment on function core.erase_mentions is
  'Redact a person in what others wrote: texts and tags of these messages, which must be locked and are to other people, and keys, notes, reasons, templates, webhook bodies and errors. Returns how many rows.';
