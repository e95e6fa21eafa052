create function core.redact(given text, person text, mark text default '(erased)')
returns text
language sql immutable
as $$
  select regexp_replace(given,
    case when core.is_phone(person)
      -- A number that is a whole JSON value is not a phone number, and redacting it would break the JSON.
      then '(?<![0-9])(?<!" ?: ?)\+?' || substr(person, 2) || '(?![0-9])'
      -- No match inside a longer address. In JSON, an escape such as \n may precede the address. A character such
      -- as an apostrophe belongs to an address only between letters, as in o'brien; otherwise it quotes one.
      else '((?<![a-z0-9._+-])(?<![a-z0-9][''&!#$%*^~])|(?<=\\[nrt]))'
        || regexp_replace(person, '([^a-z0-9@])', '\\\1', 'g')
        || '(?![a-z0-9-]|\.[a-z0-9])'
    end,
    mark, 'gi')
$$;

comment on function core.redact is
  'Returns a text, or JSON as text, with the mark in place of each mention of the person: an email address in any case, or a phone number with its plus or without.';
