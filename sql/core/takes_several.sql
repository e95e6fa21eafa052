create function core.takes_several(channel app.channel)
returns boolean
language plpgsql stable
as $$
begin
  return coalesce(
    (
      select bool_or((core.send_tasks(takes_several.channel))[2] = any (p.tasks))
      from app.processes p
      where case takes_several.channel when 'email' then 'worker' else 'sms' end = any (p.roles)
    ),
    -- A worker that is started later is of this version.
    true);
end
$$;

comment on function core.takes_several is
  'Returns whether a worker takes jobs of several messages. During an upgrade the workers of a version that does not know these jobs may be alone.';
