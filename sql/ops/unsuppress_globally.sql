create function ops.unsuppress_globally(email text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_note text;
  v_before jsonb;
  v_copies app.suppressions[];
  v_erased uuid[] := array(
    select a.organisation_id from core.suppressions_by_hash(lower(unsuppress_globally.email)) a where a.reason = 'hard_bounce');
begin
  v_note := core.remove_hard_bounce(lower(unsuppress_globally.email));
  v_before := case when v_note is not null then jsonb_build_object('note', v_note) end;
  if core.lift_suppression_hashes(lower(unsuppress_globally.email), null, '{hard_bounce}') <> '{}' then
    v_before := coalesce(v_before, '{"note": "(erased)"}');
  end if;
  if v_before is null then
    raise exception '% is not suppressed globally', coalesce(quote_literal(unsuppress_globally.email), 'null')
      using hint = 'select email from ops.suppressions where organisation is null';
  end if;
  -- Lock order: by organisation, as receipts write them.
  perform from app.suppressions s
  where s.email = lower(unsuppress_globally.email)
  order by s.organisation_id
  for no key update;
  -- The organisations' own entries for the hard bounce would otherwise still block the address.
  update app.suppressions s set other_reasons = array_remove(s.other_reasons, 'hard_bounce')
  where s.email = lower(unsuppress_globally.email) and 'hard_bounce' = any (s.other_reasons);
  with copies as (
    delete from app.suppressions s
    where s.email = lower(unsuppress_globally.email) and s.reason = 'hard_bounce'
    returning s.*
  )
  select array_agg(c::app.suppressions) into v_copies from copies c;
  perform core.restore_other_reasons(v_copies);
  perform core.remove_at_provider(lower(unsuppress_globally.email),
    array(select c.organisation_id from unnest(v_copies) c) || v_erased);
  perform core.audit('unsuppress_globally', null, lower(unsuppress_globally.email), v_before, null);
end
$$;

comment on function ops.unsuppress_globally is
  'Remove the suppression of an address for every organisation. This includes suppressions after hard bounces; the provider''s own suppressions of the address are removed as well.';
