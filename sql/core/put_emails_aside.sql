create function core.put_emails_aside(verdicts core.email_verdict[])
returns void
language plpgsql volatile
as $$
begin
  perform core.hold_until_resumed(array(select v.message_id from unnest(verdicts) v where v.verdict = 'hold'));
  perform core.wait_for_lists(array(select v.message_id from unnest(verdicts) v where v.verdict = 'wait'));

  perform core.end_messages(array(
    select (v.message_id, 'rejected', r.code, r.reason)::core.ending
    from unnest(verdicts) v
    join (values
      ('org_suspended', 'The organisation is suspended.'),
      ('recipient_suppressed', 'A recipient was suppressed after the message was accepted.'),
      ('domain_not_verified', 'The domain was removed, or its records were gone, after the message was accepted.')
    ) r (code, reason) on r.code = v.verdict));

  perform core.send_later('email', v.message_id, v.organisation_id, v.class, (0.5 + random()) * interval '1 second')
  from unnest(verdicts) v
  where v.verdict = 'defer';
end
$$;

comment on function core.put_emails_aside is
  'Hold, defer or reject the emails that are not attempted now (core.judge_emails_to_start).';
