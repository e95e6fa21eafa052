-- The comments of functions and views are the descriptions. This list adds a topic and an example, in the
-- order of ops.help. All examples use the same names, so that one can follow another.
create function core.manual()
returns table (place bigint, topic text, name text, arguments text, sentence text, description text, example text)
language sql stable
as $$
  with entry as (
    select row_number() over () as place, e.*
    from (values
      ('help', 'help', 'select * from ops.help(''domain'')'),
      ('help', 'example', 'select ops.example(''pause'')'),

      ('accounts', 'organisations', 'select id, name, state from ops.organisations where name ilike ''%acme%'''),
      ('accounts', 'create_organisation', 'select ops.create_organisation(''Acme'', ''owner@acme.example'', ''starter'')'),
      ('accounts', 'rename_organisation', 'select ops.rename_organisation(''Acme'', ''Acme Ltd'')'),
      ('accounts', 'set_owner_email', 'select ops.set_owner_email(''Acme'', ''other@acme.example'')'),
      ('accounts', 'members', 'select organisation, email, role from ops.members'),
      ('accounts', 'invite', 'select ops.invite(''Acme'', ''ann@acme.example'', ''member'')'),
      ('accounts', 'remove_member', 'select ops.remove_member(''Acme'', ''ann@acme.example'')'),
      ('accounts', 'users', 'select email, is_operator, seen_at from ops.users'),
      ('accounts', 'make_operator', 'select ops.make_operator(''ann@acme.example'')'),
      ('accounts', 'create_sign_in_link', 'select ops.create_sign_in_link(''ann@acme.example'')'),
      ('accounts', 'sign_out', 'select ops.sign_out(''ann@acme.example'')'),
      ('accounts', 'pause', 'select ops.pause(''Acme'', ''under review'')'),
      ('accounts', 'resume', 'select ops.resume(''Acme'')'),
      ('accounts', 'suspend', 'select ops.suspend(''Acme'', ''unpaid'')'),
      ('accounts', 'reinstate', 'select ops.reinstate(''Acme'')'),
      ('accounts', 'api_keys', 'select organisation from ops.api_keys where prefix = ''sk_live_01234567'''),
      ('accounts', 'create_api_key', 'select ops.create_api_key(''Acme'', ''live'', ''{emails:send,read}'')'),
      ('accounts', 'revoke_api_key', 'select ops.revoke_api_key(''sk_live_01234567'')'),

      ('plans', 'plans', null),
      ('plans', 'create_plan', 'select ops.create_plan(''growth'', ''Growth'', 499, 50000, 1000, 10)'),
      ('plans', 'set_plan', 'select ops.set_plan(''Acme'', ''growth'')'),
      ('plans', 'set_plan_terms', 'select ops.set_plan_terms(''growth'', price_rand => 599)'),

      ('billing', 'statements', 'select * from ops.statements where period_end >= ''2026-03-01'' and period_end < ''2026-04-01'''),
      ('billing', 'statement', 'select * from ops.statement(''Acme'')'),
      ('billing', 'grant_credits', 'select ops.grant_credits(''Acme'', 500, ''invoice 17'')'),
      ('billing', 'credit_ledger', 'select * from ops.credit_ledger where organisation = ''org_…'' limit 20'),
      ('billing', 'ledger_check', 'select * from ops.ledger_check where not is_balanced'),

      ('messages', 'messages', 'select id, status, "to", error_code from ops.messages limit 20'),
      ('messages', 'messages_of', 'select * from ops.messages_of(''jane@acme.example'', now() - interval ''3 days'')'),
      ('messages', 'timeline', 'select * from ops.timeline(''jane@acme.example'')'),
      ('messages', 'why', 'select ops.why(''jane@acme.example'')'),
      ('messages', 'retry_message', 'select ops.retry_message(''jane@acme.example'')'),
      ('messages', 'stuck_messages', 'select *, ops.why(id) from ops.stuck_messages limit 10'),

      ('email', 'suppressions', 'select * from ops.suppressions where email = ''jane@acme.example'''),
      ('email', 'suppress_globally', 'select ops.suppress_globally(''gone@acme.example'', ''a spam trap'')'),
      ('email', 'unsuppress_globally', 'select ops.unsuppress_globally(''gone@acme.example'')'),
      ('email', 'complaint_rates', null),
      ('email', 'stray_receipts', null),

      ('domains', 'domains', 'select name, status, not_found, wrong_since from ops.domains'),
      ('domains', 'domain_records', 'select * from ops.domain_records where domain = ''acme.example'''),
      ('domains', 'domains_at_risk', null),
      ('domains', 'verify_domain', 'select ops.verify_domain(''Acme'', ''acme.example'')'),
      ('domains', 'release_domain', 'select ops.release_domain(''claimed.example'')'),
      ('domains', 'rotate_dkim', 'select ops.rotate_dkim(''acme.example'')'),
      ('domains', 'dns_zone', 'select line from ops.dns_zone'),
      ('domains', 'powerdns_settings', null),
      ('domains', 'powerdns_records', null),

      ('templates', 'templates', 'select id, name, placeholders from ops.templates'),
      ('templates', 'create_template', 'select ops.create_template(''Acme'', ''Welcome'', ''Hello {{name}}'', null, ''Hello {{name}}'')'),
      ('templates', 'change_template', 'select ops.change_template(''Welcome'', ''Welcome'', ''Hi {{name}}'', null, ''Hi {{name}}'')'),
      ('templates', 'template_versions', 'select version, changed_at, changed_by, subject from ops.template_versions where template = ''tpl_…'' order by version desc'),
      ('templates', 'restore_template', 'select ops.restore_template(''Welcome'', 1)'),
      ('templates', 'delete_template', 'select ops.delete_template(''Welcome'')'),

      ('sms', 'senders', null),
      ('sms', 'approve_sender', 'select ops.approve_sender(''Acme'', ''AcmeShop'')'),
      ('sms', 'revoke_sender', 'select ops.revoke_sender(''Acme'', ''AcmeShop'')'),
      ('sms', 'sms_settings', null),
      ('sms', 'set_shared_sender', 'select ops.set_shared_sender(''Postgram'')'),
      ('sms', 'set_marketing_hours', 'select ops.set_marketing_hours(''statutory'')'),
      ('sms', 'holidays', null),
      ('sms', 'add_holiday', 'select ops.add_holiday(''2029-05-30'', ''General election'')'),
      ('sms', 'remove_holiday', 'select ops.remove_holiday(''2029-05-30'')'),
      ('sms', 'consents', 'select * from ops.consents where phone = ''+27821234567'''),
      ('sms', 'record_consent', 'select ops.record_consent(''Acme'', ''+27821234567'', ''form at acme.example'')'),
      ('sms', 'withdraw_consent', 'select ops.withdraw_consent(''Acme'', ''+27821234567'')'),
      ('sms', 'blocked_numbers', null),
      ('sms', 'block_number', 'select ops.block_number(''+27821234567'', ''asked by letter'')'),
      ('sms', 'unblock_number', 'select ops.unblock_number(''+27821234567'')'),
      ('sms', 'staged_numbers', '\copy ops.staged_numbers from ''numbers.csv'' csv'),
      ('sms', 'apply_staged_numbers', 'select ops.apply_staged_numbers(note => ''June 2026'')'),

      ('webhooks', 'webhook_endpoints', 'select * from ops.webhook_endpoints where state <> ''enabled'''),
      ('webhooks', 'failing_endpoints', null),
      ('webhooks', 'create_webhook_endpoint', 'select * from ops.create_webhook_endpoint(''Acme'', ''https://shop.example/hook'', ''{email.sent,email.bounced}'')'),
      ('webhooks', 'set_webhook_endpoint', 'select ops.set_webhook_endpoint(''https://shop.example/hook'', event_types => ''{email.bounced}'')'),
      ('webhooks', 'rotate_webhook_secret', 'select ops.rotate_webhook_secret(''https://shop.example/hook'')'),
      ('webhooks', 'disable_webhook_endpoint', 'select ops.disable_webhook_endpoint(''https://shop.example/hook'', ''asked by its owner'')'),
      ('webhooks', 'enable_webhook_endpoint', 'select ops.enable_webhook_endpoint(''https://shop.example/hook'', replay => true)'),
      ('webhooks', 'delete_webhook_endpoint', 'select ops.delete_webhook_endpoint(''https://shop.example/hook'')'),
      ('webhooks', 'send_test_event', 'select ops.send_test_event(''https://shop.example/hook'', ''email.bounced'')'),
      ('webhooks', 'webhook_events', 'select * from ops.webhook_events where organisation = ''org_…'' limit 20'),
      ('webhooks', 'webhook_attempts', 'select * from ops.webhook_attempts where endpoint = ''we_…'' limit 20'),
      ('webhooks', 'replay_event', 'select ops.replay_event(''evt_…'', ''https://shop.example/hook'')'),
      ('webhooks', 'replay_events', 'select ops.replay_events(''https://shop.example/hook'', now() - interval ''1 day'', now(), only_missed => true)'),

      ('reports', 'daily_volume', 'select * from ops.daily_volume where tag is null order by day desc limit 20'),
      ('reports', 'outcome_rates', 'select * from ops.outcome_rates order by bounced_rate desc nulls last'),
      ('reports', 'bounce_reasons', 'select * from ops.bounce_reasons limit 20'),
      ('reports', 'latencies', 'select * from ops.latencies order by day desc limit 8'),

      ('service', 'cells', 'select number, name, heartbeat_at, is_replicating from ops.cells'),
      ('service', 'set_cell', 'select ops.set_cell(1, ''first'')'),
      ('service', 'begin_division', 'select ops.begin_division(2, ''second'', ''{Acme}'')'),
      ('service', 'division', null),
      ('service', 'divide', 'select * from ops.divide(2)'),
      ('service', 'end_division', 'select ops.end_division()'),
      ('service', 'moved_organisations', 'select organisation, name, cell, purged_at from ops.moved_organisations'),
      ('service', 'key_map', 'select format(''%s %s'', key, backend) from ops.key_map'),
      ('service', 'checks', 'select name, severity, hint from ops.checks where not ok'),
      ('service', 'processes', null),
      ('service', 'queue', null),
      ('service', 'failing_providers', null),
      ('service', 'clock', null),
      ('service', 'notices', 'select * from ops.notices where sent_at is null limit 20'),
      ('service', 'retention', null),
      ('service', 'table_sizes', 'select name, pg_size_pretty(grown_bytes), grown_since from ops.table_sizes order by grown_bytes desc nulls last'),
      ('service', 'set_retention', 'select ops.set_retention(''bodies'', 7)'),
      ('service', 'after_restore', 'select ops.after_restore()'),

      ('people', 'export_person', 'select * from ops.export_person(''jane@acme.example'')'),
      ('people', 'erase_person', 'select ops.erase_person(''jane@acme.example'')'),
      ('people', 'audit', 'select at, actor, action, target from ops.audit order by id desc limit 20'),
      ('people', 'audit_seals', 'select id, sealed_at, sha256 from ops.audit_seals order by id desc limit 1')
    ) e (topic, name, example)
  ),
  object as (
    select c.relname::text as name, null as arguments, obj_description(c.oid, 'pg_class') as description
    from pg_class c
    where c.relnamespace = 'ops'::regnamespace and c.relkind in ('v', 'r')
    union all
    select p.proname::text, coalesce((
        select string_agg(case a.place when p.pronargs - p.pronargdefaults + 1 then '[' else '' end || a.name, ', '
            order by a.place) || case when p.pronargdefaults > 0 then ']' else '' end
        from unnest(p.proargnames[:p.pronargs]) with ordinality a (name, place)), ''),
      obj_description(p.oid, 'pg_proc')
    from pg_proc p
    where p.pronamespace = 'ops'::regnamespace
  )
  select e.place, e.topic, o.name, o.arguments, substring(o.description from '^.*?\.(?=\s|$)'), o.description,
    coalesce(e.example, format('select * from ops.%s', o.name)) || case when e.example like '\\%' then '' else ';' end
  from object o
  left join entry e on e.name = o.name
$$;

comment on function core.manual is
  'Returns every function, view and table of schema ops: topic, name, arguments (optional ones in brackets, empty if there are none, null for a view), the first sentence of its comment, the whole comment, and an example. topic is null for an object that is missing from the list in this function.';
