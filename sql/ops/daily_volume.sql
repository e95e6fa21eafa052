create view ops.daily_volume as
select v.day, core.encode_id('org', v.organisation_id) as organisation, v.channel, v.class, v.tag,
  v.accepted, v.sent, v.delivered, v.bounced, v.complained, v.failed, v.expired, v.rejected, v.units
from app.daily_volume v;

comment on view ops.daily_volume is
  'Live messages and their outcomes by day, organisation and tag. A day is the UTC day on which the messages were accepted. Each channel and class has its own row. Sandbox messages are not counted. Counts are at most a minute old. Add "where tag is null" for totals; otherwise a tagged message counts once more for each of its tags.';

comment on column ops.daily_volume.day is 'The UTC day on which the messages were accepted.';
comment on column ops.daily_volume.organisation is 'The organisation''s ID, org_….';
comment on column ops.daily_volume.channel is 'email or sms.';
comment on column ops.daily_volume.class is 'transactional or marketing.';
comment on column ops.daily_volume.tag is 'One tag; null for all messages, tagged or not.';
comment on column ops.daily_volume.accepted is 'Number of messages accepted.';
comment on column ops.daily_volume.sent is 'Number of those that a provider accepted.';
comment on column ops.daily_volume.delivered is 'Number of messages delivered.';
comment on column ops.daily_volume.bounced is 'Number of emails that bounced.';
comment on column ops.daily_volume.complained is 'Number of emails with a complaint.';
comment on column ops.daily_volume.failed is 'Number of messages that failed permanently.';
comment on column ops.daily_volume.expired is 'Number of SMS that the network could not deliver in time.';
comment on column ops.daily_volume.rejected is 'Number of messages that Postgram rejected before sending them.';
comment on column ops.daily_volume.units is 'What the accepted messages took of the plan or of credits: recipients of emails, segments of SMS.';
