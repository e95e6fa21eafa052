-- The service judges what it connects to once more and for good (src/webhooks/target.ts, lookup.ts);
-- this is to tell of it at once. Brackets, letters with a percent sign and such are no host name here,
-- while readers of URLs make addresses of many of them.
create function core.webhook_url_problem(url text)
returns text
language plpgsql stable
as $$
declare
  v_allows_private boolean := (select s.allows_private from app.webhook_settings s);
  v_authority text;
  v_host text;
  v_port numeric;
begin
  if url is null or url = '' then
    return 'is missing';
  elsif length(url) > 2000 then
    return 'has more than 2000 characters';
  elsif url ~ '[^\x01-\x7f]' then
    return 'has a character that is not ASCII; write an international name in its ASCII form (xn--)';
  -- Readers of URLs drop blanks and line ends, and take a backslash for a slash.
  elsif url !~ '^[!-~]*$' or url like '%\\%' then
    return 'has a blank, a control character or a backslash in it';
  elsif url !~* '^https?://[^/?#]' or (url ~* '^http:' and not v_allows_private) then
    return 'is not an https URL';
  elsif url like '%#%' then
    return 'has a fragment (#), which is never sent';
  end if;

  v_authority := lower(substring(url, '^[a-zA-Z]+://([^/?]+)'));
  v_host := regexp_replace(v_authority, ':[0-9]*$', '');
  v_port := coalesce(nullif(substring(v_authority, ':([0-9]+)$'), ''), '443');
  if v_authority like '%@%' then
    return 'has a user or a password in it';
  elsif v_port > 65535 then
    return 'has a port that does not exist';
  elsif v_allows_private then
    return null;
  elsif v_host ~ '^\[|(^|\.)([0-9]+|0x[0-9a-f]*)\.?$' then
    return 'has an IP address in it, where a host name is needed';
  elsif length(v_host) > 253 or v_host like '%.' or v_host !~ '^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.|$))+$' then
    return 'has no valid host name';
  -- RFC 6761, 6762, 8375 and ICANN's resolution of 29 July 2024 keep these off the public Internet.
  elsif v_host not like '%.%' or v_host ~ '\.(localhost|local|internal|home\.arpa)$' then
    return 'has a host name that is not public';
  -- As fetch refuses them (WHATWG, "bad ports"): protocols that could be talked to in HTTP.
  elsif v_port <> 443 and v_port < 1024 or v_port in (
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566,
    6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080
  ) then
    return 'has a port that may not be used: 443 may, and those from 1024 up but for some of other protocols';
  end if;
  return null;
end
$$;

comment on function core.webhook_url_problem is
  'Why events cannot be delivered to a URL, as the rest of a sentence; null when nothing is wrong with it. What its name leads to is checked when it is connected to.';
