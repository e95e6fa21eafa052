create function core.is_timely(signed_at timestamptz, at timestamptz)
returns boolean
language sql stable
as $$
  -- Mailgun retries for 7.5 hours and does not document whether it signs each retry again.
  select signed_at between at - interval '8 hours' and at + interval '5 minutes'
$$;

comment on function core.is_timely is
  'Returns whether a callback with this signature time is still accepted.';
