create function core.insert_emails(
  accepted core.judged_email[], items jsonb, sized core.sized_email[], templates core.parsed_template[], at timestamptz
)
returns void
language plpgsql volatile
as $$
begin
  -- One statement for the three tables, because each needs what the items say.
  with email as materialized (
    select a.id, a.organisation_id, a.mode, a.recipients as recipient_count, sized[a.place] as sized, i.*
    from jsonb_populate_recordset(null::core.accept_email, items) with ordinality as i
    join unnest(accepted) a on a.place = i.ordinality
  ),
  new_messages as (
    insert into app.messages (
      status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
      recipients, created_at, sent_at, is_sandbox
    )
    select
      case e.mode when 'live' then 'queued' else 'sent' end::app.message_status, e.id,
      e.organisation_id, 'email', e.mode, e.class, e.from_address, e.to_addresses,
      coalesce((e.sized).subject, e.subject), e.tags, e.recipient_count, insert_emails.at,
      case e.mode when 'test' then insert_emails.at end, e.is_sandbox is true
    from email e
  ),
  new_changes as (
    insert into app.status_changes (message_ids, change, occurred_at)
    select array_agg(e.id), 'queued', insert_emails.at
    from email e
    where e.mode = 'live' and e.is_sandbox is not true
    group by e.ordinality / 100
  )
  insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, reply_to, html, text, headers)
  select e.id, e.sender, e."to", e.cc, e.bcc, e.recipients, e.reply_to,
    case when e.template_id is null then e.html
      else core.render_template_text(templates[(e.sized).template].html, e.variables, true) end,
    case when e.template_id is null then e.text
      else core.render_template_text(templates[(e.sized).template].text, e.variables, false) end,
    e.headers
  from email e
  -- Nobody can see the body of a test message.
  where e.mode = 'live';
end
$$;

comment on function core.insert_emails is
  'Insert accepted emails, their bodies and their changes for the reports. sized and templates: of core.size_emails; null when no item has a template.';
