create view ops.daily_volume as
select v.day, core.encode_id('org', v.organisation_id) as organisation, v.channel, v.class, nullif(v.tag, '') as tag,
  v.accepted, v.sent, v.delivered, v.bounced, v.complained, v.failed, v.expired, v.rejected
from app.daily_volume v;

comment on view ops.daily_volume is
  'Live messages, without rehearsals, by the UTC day on which they were accepted, organisation, channel, class and tag (null: all of them), and what became of them up to a minute ago. Add "where tag is null", or each tagged message counts again in its tags.';
