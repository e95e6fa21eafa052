create function core.put_sms_aside(verdicts core.sms_verdict[])
returns void
language plpgsql volatile
as $$
begin
  perform core.hold_until_resumed(array(select v.message_id from unnest(verdicts) v where v.verdict = 'hold'));
  perform core.wait_for_lists(array(select v.message_id from unnest(verdicts) v where v.verdict = 'wait'));

  perform core.end_messages(array(
    select (
      v.message_id,
      case when v.has_left then 'failed' else 'rejected' end,
      v.verdict,
      case v.verdict
        when 'provider_unavailable' then
          'The network may have it or not: the link was lost before it responded, and marketing is not sent twice.'
        when 'org_suspended' then 'The organisation is suspended.'
        when 'expired' then 'It could not be sent within 24 hours of the time that it was scheduled for.'
        else v.reason
      end
    )::core.ending
    from unnest(verdicts) v
    where v.verdict not in ('hold', 'wait', 'start')));
end
$$;

comment on function core.put_sms_aside is 'Hold, defer or end the SMS that are not attempted now (core.judge_sms_to_start).';
