create function core.sms_problems(organisation_id uuid, sender_id text, scheduled_at timestamptz, at timestamptz)
returns jsonb
language plpgsql stable
as $$
declare
  v_fields jsonb := '{}';
begin
  if scheduled_at < at then
    v_fields := '{"scheduledAt": ["must not be in the past"]}';
  -- In hours, as a day is one of the session's time zone, where clocks may be changed meanwhile.
  elsif scheduled_at > at + interval '720 hours' then
    v_fields := '{"scheduledAt": ["must be at most 30 days ahead"]}';
  end if;
  if sender_id is not null and not exists (
    select from app.senders s
    where s.organisation_id = sms_problems.organisation_id and s.sender = sender_id
  ) then
    v_fields := v_fields || '{"senderId": ["is not an approved sender of this organisation"]}';
  end if;
  return nullif(v_fields, '{}');
end
$$;

comment on function core.sms_problems is
  'What is wrong with the fields of an SMS that only the service''s clock and records can tell, as in interface section 7; null when nothing is. sender_id null: the shared sender.';
