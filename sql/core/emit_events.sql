create function core.emit_events(changes core.message_change[])
returns void
language plpgsql volatile
set enable_seqscan = off
-- To plan for all partitions takes longer than to run: one generic plan, in which the bounds exclude partitions.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- The transaction's time would not do: a transaction that waited for the message may have begun before
  -- the one for which it waited.
  v_at constant timestamptz := date_trunc('milliseconds', core.clock());
  v_organisations uuid[];
  v_ids uuid[];
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id uuid;
  v_last_id uuid;
  v_endpoints uuid[];
begin
  -- Keep the organisations with an endpoint for such a change. Where there is none, nothing else is read.
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
    -- Either ops.enable_webhook_endpoint waits for this transaction, or this one for the endpoint to be enabled.
    perform pg_advisory_xact_lock_shared(core.enabling_lock());
  end if;

  -- Write the events, each with the message as this change left it.
  v_ids := array(
    select c.message_id from unnest(changes) c where c.organisation_id = any (v_organisations) order by c.message_id);
  v_first_id := v_ids[1];
  v_last_id := v_ids[cardinality(v_ids)];
  with changed as (
    select core.event_type(m.channel, c.change) as type,
      case when c.change in ('sent', 'delivered') and m.status::text <> c.change::text
        -- A later change of the same transaction gave the message its status, and has an event of its own.
        then jsonb_populate_record(m, jsonb_build_object(
          'status', c.change, 'error_code', null, 'error_message', null,
          'delivered_at', case c.change when 'delivered' then m.delivered_at end))
        else m
      end as message,
      -- Callers order events by milliseconds, and two changes may share one. Statuses move forward in this
      -- order; an opt-out changes no status and shows the present one.
      v_at + interval '1 millisecond' * array_position(
        '{opted_out,rejected,sent,delivered,expired,failed,bounced,complained}', c.change) as at
    from unnest(changes) c
    join app.messages m on m.id = any (v_ids) and m.id between v_first_id and v_last_id
      and m.id = c.message_id and m.mode = 'live'
  ),
  event as materialized (
    select core.new_id(c.at) as id, c.*
    from changed c
    where exists (
      select from app.webhook_endpoints p
      where p.organisation_id = (c.message).organisation_id and c.type = any (p.event_types))
  ),
  written as (
    insert into app.webhook_events (id, organisation_id, type, message_id, occurred_at, body)
    select e.id, (e.message).organisation_id, e.type, (e.message).id, e.at, core.event_body(e.id, e.type, e.at, e.message)
    from event e
    returning id, organisation_id, type
  ),
  delivery as (
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
    select p.id, w.id, core.now()
    from written w
    join app.webhook_endpoints p on p.organisation_id = w.organisation_id and w.type = any (p.event_types)
    where p.disabled_at is null
    returning endpoint_id
  )
  select array_agg(distinct d.endpoint_id) into v_endpoints from delivery d;
  if v_endpoints is not null then
    perform core.add_jobs(core.delivery_jobs(v_endpoints));
  end if;
end
$$;

comment on function core.emit_events is
  'Write the webhook events of changes that the caller just made to messages, which it has locked, for the endpoints that chose their type, and have them delivered. Called right after each change, so that an event shows the message as it is now, and so that occurredAt follows the order of the changes. Locks no rows.';
