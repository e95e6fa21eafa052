create function core.plain_reason(reason text)
returns text
language sql immutable
as $$
  select left(btrim(regexp_replace(regexp_replace(regexp_replace(
    -- Of an email to several recipients, the one that it is about.
    regexp_replace(left(coalesce(reason, ''), 300), '^\S+@\S+: ', ''),
    '\S+@\S+', '<address>', 'g'),
    -- Ids of queues and sessions, of which no two are the same.
    -- Not a command status of SMPP, such as 0x0000000b.
    '\m(?!0x[[:xdigit:]]{8}\M)(?=\S*\d)(?=\S*[[:alpha:]])[[:alnum:]._:-]{8,}', '<id>', 'g'),
    -- Not the three digits, or three numbers, that say what is wrong (RFC 5321, RFC 3463), nor the
    -- error of an SMS receipt.
    '(?<!\merr )\m\d{4,}\M', '<number>', 'g')), 200)
$$;

comment on function core.plain_reason is
  'What a provider said without addresses, ids and long numbers, so that what means the same reads the same.';
