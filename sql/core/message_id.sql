-- Postgres inlines this function. The body is parsed when the function is created, because views call it for
-- readers without rights on schema core.
create function core.message_id(channel app.channel, id uuid)
returns text
language sql immutable
return core.encode_id(case channel when 'email' then 'em' else 'sm' end, id);

comment on function core.message_id is 'Returns the ID of a message as callers see it, em_… or sm_….';
