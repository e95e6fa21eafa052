create function core.unnamed(given text, person text, mark text default '(erased)')
returns text
language sql immutable
as $$
  select regexp_replace(given,
    case when core.is_phone(person)
      -- A number that is a whole value of JSON is no phone's, and without it there would be no JSON.
      then '(?<![0-9])(?<!" ?: ?)\+?' || substr(person, 2) || '(?![0-9])'
      -- Not within a longer one. What stands before it in JSON may be an escape such as \n. A sign such as
      -- an apostrophe belongs to an address only between letters, as in o'brien; otherwise it quotes one.
      else '((?<![a-z0-9._+-])(?<![a-z0-9][''&!#$%*^~])|(?<=\\[nrt]))'
        || regexp_replace(person, '([^a-z0-9@])', '\\\1', 'g')
        || '(?![a-z0-9-]|\.[a-z0-9])'
    end,
    mark, 'gi')
$$;

comment on function core.unnamed is
  'A text, or JSON as text, with a mark in each place where it names that address, in any case, or number, with its plus or without.';
