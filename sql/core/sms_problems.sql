create function core.sms_problems(organisation_id uuid, sender_id text, scheduled_at timestamptz, at timestamptz)
returns jsonb
language plpgsql stable
as $$
declare
  v_fields jsonb := '{}';
begin
  if scheduled_at < at then
    v_fields := '{"scheduledAt": ["must not be in the past"]}';
  -- In hours, because the length of a day depends on the session's time zone (daylight saving).
  elsif scheduled_at > at + interval '720 hours' then
    v_fields := '{"scheduledAt": ["must be at most 30 days ahead"]}';
  end if;
  -- Nested, because the condition with a query takes longer, and most SMS have the shared sender.
  if sender_id is not null then
    if not exists (
      select from app.senders s
      where s.organisation_id = sms_problems.organisation_id and s.sender = sender_id
    ) then
      v_fields := v_fields || '{"senderId": ["is not an approved sender of this organisation"]}';
    end if;
  end if;
  return nullif(v_fields, '{}');
end
$$;

comment on function core.sms_problems is
  'Returns the problems of an SMS that only the service''s clock and records reveal, as the fields of the error, {field: [problem]}; null if there are none. sender_id null means the shared sender.';
