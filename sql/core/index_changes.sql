create function core.index_changes(changes core.unsummed_change[])
returns void
language plpgsql volatile
set enable_seqscan = off
set jit = off
as $$
declare
  v_settled uuid;
begin
  -- Under the lock, or a message that core.index_settled passes now would keep the status that it had.
  perform pg_advisory_xact_lock(core.search_lock());
  select p.indexed_until into v_settled from app.search_progress p where p.pass = 'settled';
  perform core.add_terms(array(
    select row(m.organisation_id, core.kind_term(m.channel, m.class, m.mode, c.status), m.id, null)::core.message_term
    from (
      select distinct c.message_id, c.change::text::app.message_status as status
      from unnest(changes) c
      where core.is_rare_status(c.change::text) or c.message_id <= v_settled
    ) c
    join app.messages m on m.id = c.message_id));
end
$$;

comment on function core.index_changes is
  'Add changes of messages to the index of the search: to statuses that are rare, and all of messages whose status was indexed before.';
