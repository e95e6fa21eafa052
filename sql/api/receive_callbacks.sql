create function api.receive_callbacks(callbacks jsonb)
returns api.received_callbacks
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_now timestamptz := core.now();
  v_new integer[];
  v_outcomes text[];
  v_receipts jsonb;
begin
  -- If two transactions have the same token, the second waits here for the first. The first never waits for
  -- the second: tokens are inserted before any other lock is taken, in one order.
  with first as (
    select distinct on (c.token) c.n, c.token, c.signed_at, c.receipt
    from jsonb_populate_recordset(null::core.callback, callbacks) as c
    where core.is_timely(to_timestamp(c.signed_at), v_now)
    order by c.token, c.n
  ),
  new as (
    insert into app.callback_tokens (token, provider_event_id, signed_at)
    select f.token, (f.receipt).provider_event_id, to_timestamp(f.signed_at)
    from first f
    order by f.token
    on conflict do nothing
    returning token
  )
  select array_agg(f.n) into v_new from new join first f on f.token = new.token;

  select
    array_agg(
      case
        when not core.is_timely(to_timestamp(c.signed_at), v_now) then 'stale'
        when c.n = any (v_new) then 'recorded'
        -- The signature does not cover the event, so a known token could be sent with any other event.
        when t.provider_event_id is distinct from (c.receipt).provider_event_id then 'replayed'
        else 'repeated'
      end
      order by c.n),
    jsonb_agg(to_jsonb(c.receipt)) filter (where c.n = any (v_new) and (c.receipt).message_id is not null)
  into v_outcomes, v_receipts
  from jsonb_populate_recordset(null::core.callback, callbacks) as c
  left join app.callback_tokens t on t.token = c.token;

  return (coalesce(v_outcomes, '{}'), core.record_receipts(v_receipts))::api.received_callbacks;
end
$$;

comment on function api.receive_callbacks is
  'Record callbacks with valid signatures. Returns an outcome for each: recorded, repeated (received before), stale (signed too long ago, or in the future) or replayed (the token was received with another event). Only recorded changes anything. stored has the type of each new receipt.';
