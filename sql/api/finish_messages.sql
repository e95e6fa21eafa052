create function api.finish_messages(results jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.finish_messages(results)
$$;

comment on function api.finish_messages is
  'Record the results of attempts: {id, job (that made the attempt), outcome sent|failed|deferred|ambiguous, provider, code, text}. Optional keys: about (message, provider or connection: what a failure concerns; absent when the provider was not asked); retry_in_ms (until the next attempt of a deferred one; by default the delay grows with the attempts); ambiguous_since (when the ambiguous attempt started, if this time the provider was only asked about it); settled_recipients (of marketing to several: recipients whose copies are settled); refused ({recipient, code, text}: recipients that the provider refused for good); parts ({part, network_id}: of an SMS, the parts that the network took, whatever the outcome). Returns how many messages left the queue.';
