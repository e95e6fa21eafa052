-- A first check, to report problems immediately; src/webhooks/target.ts and lookup.ts check every connection.
-- Hosts with brackets, percent signs and similar characters are refused, because URL parsers read many of
-- them as IP addresses.
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
    return 'contains a character that is not ASCII; write an international name in its ASCII form (xn--)';
  -- URL parsers drop spaces and line breaks, and read a backslash as a slash.
  elsif url !~ '^[!-~]*$' or url like '%\\%' then
    return 'contains a space, a control character or a backslash';
  elsif url !~* '^https?://[^/?#]' or (url ~* '^http:' and not v_allows_private) then
    return 'is not an https URL';
  elsif url like '%#%' then
    return 'contains a fragment (#), which is never sent';
  end if;

  v_authority := lower(substring(url, '^[a-zA-Z]+://([^/?]+)'));
  v_host := regexp_replace(v_authority, ':[0-9]*$', '');
  v_port := coalesce(nullif(substring(v_authority, ':([0-9]+)$'), ''), '443');
  if v_authority like '%@%' then
    return 'contains a user name or a password';
  elsif v_port > 65535 then
    return 'has a port above 65535';
  elsif v_allows_private then
    return null;
  elsif v_host ~ '^\[|(^|\.)([0-9]+|0x[0-9a-f]*)\.?$' then
    return 'contains an IP address; use a host name';
  elsif length(v_host) > 253 or v_host like '%.' or v_host !~ '^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.|$))+$' then
    return 'has no valid host name';
  -- RFC 6761, 6762, 8375 and ICANN's resolution of 29 July 2024 reserve these names for private use.
  elsif v_host not like '%.%' or v_host ~ '\.(localhost|local|internal|home\.arpa)$' then
    return 'has a host name that is not public';
  -- The "bad ports" of the WHATWG fetch standard: other protocols on them could be attacked by HTTP.
  elsif v_port <> 443 and v_port < 1024 or v_port in (
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566,
    6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080
  ) then
    return 'has a port that may not be used; use 443, or a port from 1024 that no other protocol reserves';
  end if;
  return null;
end
$$;

comment on function core.webhook_url_problem is
  'Returns why events cannot be delivered to a URL, as the rest of a sentence that starts with "the URL"; null if there is no problem. The addresses of the host are checked when the service connects.';
