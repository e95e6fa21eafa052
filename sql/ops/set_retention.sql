create function ops.set_retention(what text, days integer)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_before integer;
  v_messages integer;
begin
  if set_retention.what is null or set_retention.what not in ('messages', 'bodies', 'webhooks') then
    raise exception '% is not kept for a time; messages, bodies and webhooks are', coalesce(quote_literal(set_retention.what), 'null');
  end if;
  if set_retention.days is null or set_retention.days not between 1 and 3660 then
    raise exception 'give a number of days from 1 to 3660';
  end if;
  -- An SMS may wait for 30 days, and a month is dropped whole.
  if set_retention.what = 'messages' and set_retention.days < 62 then
    raise exception 'messages are kept for at least 62 days, as some wait for 30';
  end if;
  -- All of them, so that of two operators the second sees what the first set.
  perform from app.retention r order by r.what for no key update;
  select r.days into v_before from app.retention r where r.what = set_retention.what;
  update app.retention r set days = set_retention.days where r.what = set_retention.what;
  -- A person's are found by their messages (ops.erase_person).
  select r.days into v_messages from app.retention r where r.what = 'messages';
  if exists (select from app.retention r where r.days > v_messages) then
    raise exception 'bodies and webhooks cannot be kept for longer than messages'
      using hint = 'select what, days from ops.retention';
  end if;
  perform core.audit('set_retention', null, set_retention.what,
    jsonb_build_object('days', v_before), jsonb_build_object('days', set_retention.days));
end
$$;

comment on function ops.set_retention is
  'Set for how many days messages, bodies or webhooks are kept. Messages include their timelines, webhooks are events with their attempts. Fewer days drop what is older within a minute, for good; webhook events can be replayed for no longer than they are kept.';
