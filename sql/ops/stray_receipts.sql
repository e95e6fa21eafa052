create view ops.stray_receipts as
select s.day, s.provider, s.receipts, core.encode_id('em', s.last_message_id) as last_message, s.last_at
from app.stray_receipts s
order by s.day desc, s.provider;

comment on view ops.stray_receipts is
  'Receipts for recipients that their message was not sent to. Counted by UTC day, newest first. Postgram ignores these receipts. Large numbers indicate a faulty or forged callback.';

comment on column ops.stray_receipts.day is 'The UTC day.';
comment on column ops.stray_receipts.provider is 'The provider that reported them.';
comment on column ops.stray_receipts.receipts is 'Number of ignored receipts.';
comment on column ops.stray_receipts.last_message is 'The message that the last of them named, em_….';
comment on column ops.stray_receipts.last_at is 'When the last of them arrived.';
