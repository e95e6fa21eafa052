create function core.may_change(m app.messages)
returns boolean
language sql immutable
as $$
  select m.mode = 'live' and m.status in ('scheduled', 'queued', 'sent')
$$;

comment on function core.may_change is
  'Returns whether a further status is expected of a message. Only a complaint or a retry changes it otherwise.';
