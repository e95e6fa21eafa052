-- A filter id = 'em_…' on ops.messages encodes the ID of every message, so it reads the whole table.
create function ops.messages_of(whose text, since timestamptz default null, at_most integer default 100)
returns table (
  id text, status app.message_status, mode app.mode, class app.class, organisation text, "from" text, "to" text,
  subject text, tags text[], segments smallint, credits smallint, attempts smallint, provider text,
  error_code text, error_message text,
  created_at timestamptz, scheduled_at timestamptz, sent_at timestamptz, delivered_at timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- Compiling these statements, which read many partitions, takes longer than running them.
set jit = off
as $$
declare
  v_first_id uuid := core.first_id_at(least(greatest(since, '1970-01-01'), core.now() + interval '1 day'));
  v_organisation uuid;
  v_ids uuid[];
begin
  if at_most is null or at_most not between 1 and 10000 then
    raise exception 'at_most must be a number from 1 to 10000';
  elsif whose ~ '^(em|sm)_' then
    v_ids := array[(core.find_message(whose)).id];
  elsif core.means_person(whose) then
    v_ids := core.person_messages(core.check_person(whose), null, v_first_id, at_most);
  else
    v_organisation := core.organisation_id(whose);
    v_ids := array(
      select m.id
      from app.messages m
      where m.organisation_id = v_organisation and m.id >= v_first_id
      order by m.id desc
      limit at_most);
  end if;
  return query
  select core.message_id(m.channel, m.id), m.status, m.mode, m.class,
    core.encode_id('org', m.organisation_id), m.from_address, m.to_address,
    m.subject, m.tags, m.segments, m.credits, m.attempts, m.provider,
    m.error_code::text, m.error_message,
    m.created_at, m.scheduled_at, m.sent_at, m.delivered_at
  from app.messages m
  where m.id = any (v_ids)
  order by m.id desc
  limit at_most;
end
$$;

comment on function ops.messages_of is
  'Return the newest messages of an address, a number or an organisation. A message ID, em_… or sm_…, returns that message. An address also matches cc and bcc. Every lookup uses an index. Returns at most at_most messages, newest first.';
