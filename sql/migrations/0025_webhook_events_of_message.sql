-- The webhook events of one message. Only for partitions that are made from now on: to index the existing ones
-- would block every change of a message meanwhile, and they are dropped within the retention period.
create index webhook_events_message_id on only app.webhook_events (message_id);
