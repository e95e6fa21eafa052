create function core.plain_reason(reason text)
returns text
language sql immutable
as $$
  select left(btrim(regexp_replace(regexp_replace(regexp_replace(
    -- Removes the recipient that prefixes the reason of an email to several recipients.
    regexp_replace(left(coalesce(reason, ''), 300), '^\S+@\S+: ', ''),
    '\S+@\S+', '<address>', 'g'),
    -- Replaces IDs of queues and sessions, which are all different, but not a command status of SMPP such as
    -- 0x0000000b.
    '\m(?!0x[[:xdigit:]]{8}\M)(?=\S*\d)(?=\S*[[:alpha:]])[[:alnum:]._:-]{8,}', '<id>', 'g'),
    -- Keeps three-digit codes and enhanced status codes (RFC 5321, RFC 3463), and the error number of an SMS
    -- receipt.
    '(?<!\merr )\m\d{4,}\M', '<number>', 'g')), 200)
$$;

comment on function core.plain_reason is
  'Returns a provider''s text without addresses, IDs and long numbers, so that equal reasons have equal texts.';
