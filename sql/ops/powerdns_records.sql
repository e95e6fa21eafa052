create view ops.powerdns_records as
select r.name, r.type, r.content, 3600 as ttl, 0 as prio,
  -- PowerDNS knows its zones by number, and here a zone is only a name.
  ('x' || substr(md5(r.zone), 1, 7))::bit(28)::integer as domain_id,
  false as disabled, null::text as ordername, true as auth
from (
  -- The serial is the time: a secondary takes a copy whenever it looks, each quarter of an hour. That
  -- there is nothing at a name holds for five minutes, as its key may be about to come.
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
  'The DKIM zone as PowerDNS reads it. PowerDNS serves it with ops.powerdns_settings. Name the zone''s name servers, which have their addresses outside of the zone, by "alter database … set postgram.name_servers = ''ns1.example.com, ns2.example.com''"; otherwise it is ns1 in the zone.';

comment on column ops.powerdns_records.name is 'The name of the record, without a dot at its end.';
comment on column ops.powerdns_records.type is 'SOA, NS or TXT.';
comment on column ops.powerdns_records.content is 'What it says.';
comment on column ops.powerdns_records.ttl is 'How long others may keep it, in seconds.';
comment on column ops.powerdns_records.prio is 'Unused: 0.';
comment on column ops.powerdns_records.domain_id is 'The number of its zone, as PowerDNS wants one.';
comment on column ops.powerdns_records.disabled is 'Whether it is not served: never.';
comment on column ops.powerdns_records.ordername is 'Unused: null.';
comment on column ops.powerdns_records.auth is 'Whether it is of this zone: always.';
