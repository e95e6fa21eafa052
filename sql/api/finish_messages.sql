create function api.finish_messages(results jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.finish_messages(results)
$$;

comment on function api.finish_messages is
  'Record what providers answered to hand-overs: {id, job (whose work it was), outcome sent|failed|deferred|ambiguous, provider, code, text}, and where it applies about (message, provider or connection: whom a failure concerns; absent when the provider was not asked), retry_in_ms (of one that is deferred: when to try again; otherwise the delay grows with the attempts), ambiguous_since (this time the provider was only asked after a hand-over that began then), settled_recipients (of marketing to several: recipients whose copies are settled), refused ({recipient, code, text}: recipients refused for good), parts ({part, network_id}: of an SMS, the parts that the network took, whatever the outcome). Answers how many messages left the queue.';
