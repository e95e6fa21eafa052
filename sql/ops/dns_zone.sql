create view ops.dns_zone as
select d.dkim_zone as zone, k.host || '.' as name, 'TXT' as type, 3600 as ttl, k.value,
  format('%s. 3600 IN TXT %s', k.host, core.txt_strings(k.value)) as line
from app.dkim_keys k
join app.domains d on d.id = k.domain_id
where d.dkim_zone is not null;

comment on view ops.dns_zone is
  'DKIM keys to publish in the zone DKIM_ZONE. The column line is ready for a zone file, after your SOA and NS records.';

comment on column ops.dns_zone.zone is 'The zone, DKIM_ZONE.';
comment on column ops.dns_zone.name is 'The name of the record, with a final dot.';
comment on column ops.dns_zone.type is 'TXT.';
comment on column ops.dns_zone.ttl is 'Time to live, in seconds.';
comment on column ops.dns_zone.value is 'The DKIM key as one string.';
comment on column ops.dns_zone.line is 'The record as a line of a zone file.';
