-- Postgres merges this into the query that asks. The body is parsed here, not by each caller: views call it
-- in the name of readers, who may not look into schema core.
create function core.message_id(channel app.channel, id uuid)
returns text
language sql immutable
return core.encode_id(case channel when 'email' then 'em' else 'sm' end, id);

comment on function core.message_id is 'The id of a message as callers see it, em_… or sm_….';
