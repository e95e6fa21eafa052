create function ops.suppress_globally(email text, note text default '')
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb;
begin
  perform core.check_email(suppress_globally.email);
  if length(suppress_globally.note) > 2000 then
    raise exception 'the note must be at most 2000 characters';
  end if;
  if not exists (select from core.hard_bounces_of(lower(suppress_globally.email)))
    and not exists (
      select from core.suppressions_by_hash(lower(suppress_globally.email)) a
      where a.organisation_id is null and a.reason = 'hard_bounce')
  then
    perform core.add_hard_bounces(
      array[row(lower(suppress_globally.email), coalesce(suppress_globally.note, ''), null)::core.hard_bounce]);
    v_after := jsonb_build_object('note', coalesce(suppress_globally.note, ''));
  end if;
  perform core.audit('suppress_globally', null, lower(suppress_globally.email), null, v_after);
end
$$;

comment on function ops.suppress_globally is
  'Suppress an address for every organisation, as a hard bounce does.';
