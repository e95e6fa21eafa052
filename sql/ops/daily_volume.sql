create view ops.daily_volume as
select v.day, core.encode_id('org', v.organisation_id) as organisation, v.channel, v.class, v.tag,
  v.accepted, v.sent, v.delivered, v.bounced, v.complained, v.failed, v.expired, v.rejected
from app.daily_volume v;

comment on view ops.daily_volume is
  'Live messages and their outcomes by day, organisation and tag. A day is the UTC day on which they were accepted; sandbox messages beside a real provider do not count. Channels and classes have rows of their own. The figures are up to date to the minute. Add "where tag is null", or each tagged message counts again in its tags.';

comment on column ops.daily_volume.day is 'The UTC day on which the messages were accepted.';
comment on column ops.daily_volume.organisation is 'The organisation''s id, org_….';
comment on column ops.daily_volume.channel is 'email or sms.';
comment on column ops.daily_volume.class is 'transactional or marketing.';
comment on column ops.daily_volume.tag is 'One tag; null for all messages, with tags or without.';
comment on column ops.daily_volume.accepted is 'Messages that were accepted.';
comment on column ops.daily_volume.sent is 'Of those, messages that were handed over.';
comment on column ops.daily_volume.delivered is 'Messages that arrived.';
comment on column ops.daily_volume.bounced is 'Emails that bounced.';
comment on column ops.daily_volume.complained is 'Emails that somebody complained about.';
comment on column ops.daily_volume.failed is 'Messages that failed for good.';
comment on column ops.daily_volume.expired is 'SMS that the network could not deliver in time.';
comment on column ops.daily_volume.rejected is 'Messages that were blocked before they were sent.';
