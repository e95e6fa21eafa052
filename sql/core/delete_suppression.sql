create function core.delete_suppression(organisation_id uuid, id text)
returns app.suppressions
language plpgsql volatile
as $$
declare
  v_entry app.suppressions;
begin
  delete from app.suppressions s
  where s.organisation_id = delete_suppression.organisation_id
    and s.id = core.decode_id('sup', delete_suppression.id)
    and s.reason <> 'hard_bounce'
  returning s.* into v_entry;
  if v_entry.id is null then
    perform core.refuse('not_found');
  end if;
  -- A hash of an erased suppression is restored first; otherwise nothing would be lifted.
  v_entry.other_reasons := array_remove(core.ranked_reasons(v_entry.other_reasons || core.lift_suppression_hashes(
      v_entry.email, v_entry.organisation_id, '{hard_bounce,complaint,unsubscribe,manual}'
    )::text[]::app.suppression_reason[]), v_entry.reason);
  perform core.restore_other_reasons(array[v_entry]);
  perform core.remove_at_provider(v_entry.email, array[delete_suppression.organisation_id]);
  return v_entry;
end
$$;

comment on function core.delete_suppression is
  'Remove an organisation''s own suppression, here and at the provider. Returns the entry; a new one is created for its other_reasons, if there are any. Refuses not_found, also for an entry that a hard bounce created.';
