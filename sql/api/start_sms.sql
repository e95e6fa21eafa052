create function api.start_sms(ids uuid[])
returns setof api.sms_to_send
language plpgsql volatile security definer
set search_path = ''
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
begin
  return query
  with mine as materialized (
    select m.id
    from app.messages m
    where m.id = any (ids) and m.status in ('queued', 'scheduled') and m.channel = 'sms'
    order by m.id
    for no key update of m
  ),
  started as (
    update app.messages m
    set status = 'queued', attempts = m.attempts + 1, handover_started_at = v_now
    from mine i
    where m.id = any (ids) and m.id = i.id
    returning m.*
  )
  select s.id, s.organisation_id, s.attempts::integer, v_now, s.is_rehearsal, s.class, s.from_address, s.to_address,
    b.text, s.segments::integer,
    array(select p.part::text from app.sms_parts p where p.message_id = s.id order by p.part)
  from started s
  join app.bodies b on b.message_id = any (ids) and b.message_id = s.id;
end
$$;

comment on function api.start_sms is
  'Begin the hand-over of those of these SMS that still wait; committed before the provider is called (promise 4).';
