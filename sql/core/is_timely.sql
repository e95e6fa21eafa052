create function core.is_timely(signed_at timestamptz, at timestamptz)
returns boolean
language sql stable
as $$
  -- Mailgun tries again for seven and a half hours and does not say whether it signs anew.
  select signed_at between at - interval '8 hours' and at + interval '5 minutes'
$$;

comment on function core.is_timely is 'Whether a callback that was signed then is still taken.';
