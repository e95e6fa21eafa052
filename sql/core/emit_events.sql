create function core.emit_events(changes core.message_change[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  -- The transaction's time would not do: one that had to wait for the message may have begun before
  -- the one that it waited for.
  v_at constant timestamptz := date_trunc('milliseconds', core.clock());
  v_organisations uuid[];
  v_ids uuid[];
  v_jobs graphile_worker.job_spec[];
begin
  -- Where nobody wants to hear of anything this look is all that it costs.
  v_organisations := array(
    select c.organisation_id
    from (select distinct c.organisation_id, c.change from unnest(changes) c) c
    where exists (
      select from app.webhook_endpoints p
      where p.organisation_id = c.organisation_id
        and p.event_types && array[core.event_type('email', c.change), core.event_type('sms', c.change)]));
  if cardinality(v_organisations) = 0 then
    return;
  end if;
  if exists (
    select from app.webhook_endpoints p where p.organisation_id = any (v_organisations) and p.disabled_at is not null
  ) then
    -- Whoever enables one at the moment waits for this, or this for the endpoint to be enabled.
    perform pg_advisory_xact_lock_shared(core.enabling_lock());
  end if;
  v_ids := array(select c.message_id from unnest(changes) c where c.organisation_id = any (v_organisations));

  with news as materialized (
    select core.event_type(m.channel, c.change) as type,
      case when c.change in ('sent', 'delivered') and m.status::text <> c.change::text
        -- More followed in the same transaction, and is reported by an event of its own.
        then jsonb_populate_record(m, jsonb_build_object(
          'status', c.change, 'error_code', null, 'error_message', null,
          'delivered_at', case c.change when 'delivered' then m.delivered_at end))
        else m
      end as message,
      -- Callers order on milliseconds, and two changes may share one. In this order statuses move forward;
      -- an answer changes none, and shows the one that there is.
      v_at + interval '1 millisecond' * array_position(
        '{opted_out,rejected,sent,delivered,expired,failed,bounced,complained}', c.change) as at
    from unnest(changes) c
    join app.messages m on m.id = any (v_ids) and m.id = c.message_id and m.mode = 'live'
  ),
  event as materialized (
    select core.new_id(n.at) as id, n.*
    from news n
    where exists (
      select from app.webhook_endpoints p
      where p.organisation_id = (n.message).organisation_id and n.type = any (p.event_types))
  ),
  recorded as (
    insert into app.webhook_events (id, organisation_id, type, message_id, occurred_at, body)
    select e.id, (e.message).organisation_id, e.type, (e.message).id, e.at, core.event_body(e.id, e.type, e.at, e.message)
    from event e
  ),
  delivery as (
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
    select p.id, e.id, core.now()
    from event e
    join app.webhook_endpoints p on p.organisation_id = (e.message).organisation_id and e.type = any (p.event_types)
    where p.disabled_at is null
    returning endpoint_id
  )
  select array_agg(core.delivery_job(p)) into v_jobs
  from app.webhook_endpoints p
  where p.id in (select d.endpoint_id from delivery d);
  perform core.add_jobs(v_jobs);
end
$$;

comment on function core.emit_events is
  'Write the webhook events (interface 6.1) of changes that the caller just made to messages, which it has locked, for the endpoints that chose their type, and have them delivered. Called right after each change, so that an event shows the message as it is now, and so that occurredAt is in the order of the changes. Locks no rows.';
