create view ops.powerdns_records as
select r.name, r.type, r.content, 3600 as ttl, 0 as prio,
  -- PowerDNS identifies a zone by a number; here the name of the zone is hashed to one.
  ('x' || substr(md5(r.zone), 1, 7))::bit(28)::integer as domain_id,
  false as disabled, null::text as ordername, true as auth
from (
  -- The serial is the current time, so a secondary copies the zone at every refresh (900 s). Resolvers cache
  -- a missing name for 300 s only, as its key may be about to be published.
  select z.zone, z.zone as name, 'SOA' as type, format('%s hostmaster.%s %s 900 300 1209600 300',
    (core.name_servers(z.zone))[1], z.zone, trunc(extract(epoch from core.now()))) as content
  from (select distinct d.dkim_zone as zone from app.domains d where d.dkim_zone is not null) z
  union all
  select z.zone, z.zone, 'NS', unnest(core.name_servers(z.zone))
  from (select distinct d.dkim_zone as zone from app.domains d where d.dkim_zone is not null) z
  union all
  select d.dkim_zone, k.host, 'TXT', core.txt_strings(k.value)
  from app.dkim_keys k
  join app.domains d on d.id = k.domain_id
  where d.dkim_zone is not null
) r;

comment on view ops.powerdns_records is
  'The DKIM zone in the table layout of PowerDNS. ops.powerdns_settings makes PowerDNS read it. Set the zone''s name servers with "alter database … set postgram.name_servers = ''ns1.example.com, ns2.example.com''"; their address records belong to another zone. The default is ns1 within the zone.';

comment on column ops.powerdns_records.name is 'The name of the record, without a final dot.';
comment on column ops.powerdns_records.type is 'SOA, NS or TXT.';
comment on column ops.powerdns_records.content is 'The value of the record.';
comment on column ops.powerdns_records.ttl is 'Time to live, in seconds.';
comment on column ops.powerdns_records.prio is 'Unused: 0.';
comment on column ops.powerdns_records.domain_id is 'The number of the zone, which PowerDNS requires.';
comment on column ops.powerdns_records.disabled is 'Always false.';
comment on column ops.powerdns_records.ordername is 'Unused: null.';
comment on column ops.powerdns_records.auth is 'Always true: the zone is authoritative for the record.';
