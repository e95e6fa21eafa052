create view ops.stuck_messages as
select
  core.encode_id(case m.channel when 'email' then 'em' else 'sm' end, m.id) as id,
  core.encode_id('org', m.organisation_id) as organisation,
  m.to_address as "to",
  m.attempts,
  m.created_at,
  core.now() - m.created_at as age
from app.messages m
where m.status = 'queued'
  and m.mode = 'live'
  -- A hand-over is given up after 24 hours of trying: nothing older than two days can be queued,
  -- and the bound lets the view pass over most partitions.
  and m.id >= core.first_id_at(core.now() - interval '2 days')
  and m.created_at < core.now() - interval '1 minute'
order by m.id;

comment on view ops.stuck_messages is 'Live messages that have been queued for more than a minute, oldest first; ops.why(id) says why.';
