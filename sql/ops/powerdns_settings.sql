create view ops.powerdns_settings as
select s.line
from (
  -- Without its zone cache PowerDNS does not list all zones, a query that differs between its versions.
  select 1 as place, unnest(array['launch=gpgsql', 'zone-cache-refresh-interval=0']) as line
  union all
  select 2, format('gpgsql-%s-query=select content, ttl, prio, type, domain_id, disabled::int, name, auth::int%s from ops.powerdns_records where %s',
    q.name, q.more, q.condition)
  from (values
    ('basic', '', 'type = $1 and name = $2'),
    ('id', '', 'type = $1 and name = $2 and domain_id = $3'),
    ('any', '', 'name = $1'),
    ('any-id', '', 'name = $1 and domain_id = $2'),
    ('list', ', ordername', '(not disabled or $1) and domain_id = $2 order by name, type')
  ) q (name, more, condition)
  union all
  -- PowerDNS asks for the kind of a zone, and for metadata, of which there is none.
  select 3, format('gpgsql-%s-query=select %s', q.name, q.query)
  from (values
    ('info-zone', 'domain_id, name, '''', 0, 0, ''NATIVE'', '''', '''', '''' from ops.powerdns_records where type = ''SOA'' and name = $1'),
    ('get-domain-metadata', 'content from ops.powerdns_records where false and name = $1 and type = $2'),
    ('get-all-domain-metadata', 'type, content from ops.powerdns_records where false and name = $1')
  ) q (name, query)
) s
order by s.place;

comment on view ops.powerdns_settings is
  'Lines for pdns.conf that serve the DKIM zone from this database. Add gpgsql-host, gpgsql-port and gpgsql-dbname, and set gpgsql-user and gpgsql-password to a separate login with the role postgram_report.';

comment on column ops.powerdns_settings.line is 'A line of pdns.conf.';
