create function core.purge_terms()
returns integer
language plpgsql volatile
as $$
declare
  v_ids constant uuid[] := array(
    select d.organisation_id from app.moved_organisations d where d.purged_at is null order by d.organisation_id for update);
  v_partition text;
begin
  if v_ids = '{}' then
    return 0;
  end if;
  perform pg_advisory_xact_lock(core.search_lock());
  select min(p.name) into v_partition
  from core.partitions() p
  where p.parent = 'message_terms'
    and p.name > coalesce((
      select min(coalesce(d.purged_terms, '')) from app.moved_organisations d where d.organisation_id = any (v_ids)), '');
  if v_partition is null then
    update app.organisations o set owner_email = 'moved@postgram.invalid' where o.id = any (v_ids);
    update app.moved_organisations d set purged_at = core.now(), purged_terms = null where d.organisation_id = any (v_ids);
    return cardinality(v_ids);
  end if;
  -- Reads the whole partition, because the index begins with the term: once for all organisations.
  execute format('delete from app.%I t where t.organisation_id = any ($1)', v_partition) using v_ids;
  update app.moved_organisations d set purged_terms = v_partition where d.organisation_id = any (v_ids);
  return 1;
end
$$;

comment on function core.purge_terms is
  'Delete the index of the search of all organisations that moved, a partition at a call, and mark them purged after the last one. Returns 0 when no organisation is left.';
