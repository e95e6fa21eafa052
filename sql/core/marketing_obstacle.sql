create function core.marketing_obstacle(
  organisation_id uuid, phone text, body text, at timestamptz, out code text, out reason text
)
-- In plpgsql, because a function in SQL would be planned at each call.
language plpgsql stable
as $$
begin
  select o.words[1], o.words[2] into code, reason
  from (
    select case
      when c.opted_out_at is not null or exists (
        select from core.suppressions_by_hash(marketing_obstacle.phone) a
        where a.organisation_id = marketing_obstacle.organisation_id and a.reason = 'opted_out') then
        array['opted_out', 'The recipient has opted out of marketing from this organisation.']
      when c.consented_at is null then
        array['consent_missing', 'There is no record that the recipient agreed to marketing from this organisation.']
      when exists (select from core.blocked_numbers_of(marketing_obstacle.phone))
        or exists (select from core.suppressions_by_hash(marketing_obstacle.phone) a where a.reason = 'registry') then
        array['opted_out', 'The number is on the national opt-out registry.']
      when not core.has_opt_out_footer(body) then
        array['opt_out_footer_missing', core.opt_out_footer_missing()]
      when not core.is_sending_hour(at) then
        array['outside_sending_hours', (select case s.marketing_hours
          when 'interface' then
            'Marketing is sent from 08:00 to 20:00 South African time, not on Sundays.'
          when 'statutory' then
            'Marketing is sent from 08:00 to 20:00 South African time, on Saturdays from 09:00 to 13:00, not on Sundays and public holidays.'
        end from app.sms_settings s)]
    end as words
    from (values (true)) always (is_there)
    left join app.consents c
      on c.organisation_id = marketing_obstacle.organisation_id and c.phone = marketing_obstacle.phone
  ) o;
end
$$;

comment on function core.marketing_obstacle is
  'Returns why a marketing SMS must not be sent at a time: an error code and its message; nulls if it may be sent.';
