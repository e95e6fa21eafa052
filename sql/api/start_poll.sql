create function api.start_poll(ids uuid[])
returns setof api.sent_email
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  select m.id, d.name, d.mail_from_label || '.' || d.name,
    case m.class when 'marketing' then m.recipients else 1 end
  from app.messages m
  cross join lateral core.sending_domain(m.organisation_id, split_part(m.from_address, '@', 2)) d
  where m.id = any (ids) and m.status = 'sent' and m.mode = 'live' and m.channel = 'email'
  order by m.id
$$;

comment on function api.start_poll is
  'Returns those of these emails that have no final receipt yet. Skips emails whose domain was removed: its provider no longer knows them.';
