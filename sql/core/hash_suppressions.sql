create function core.hash_suppressions(person text)
returns integer
language plpgsql volatile
as $$
declare
  v_sha256 bytea := (select core.person_sha256(person, s.salt) from app.person_salt s);
  v_cell smallint := core.cell_number();
  v_rows integer;
begin
  -- Lock first, in the order in which receipts lock these rows: the steps below must see the same rows.
  perform from app.hard_bounces b where b.email = person and b.cell = v_cell for update;
  perform from app.suppressions s where s.email = person order by s.organisation_id for update;
  perform from app.consents c where c.phone = person order by c.organisation_id for update;
  perform from app.blocked_numbers b where b.phone = person and b.cell = v_cell for update;

  insert into app.suppression_hashes (sha256, organisation_id, reason, erased_at)
  select v_sha256, h.organisation_id, h.reason::app.suppression_hash_reason, core.now()
  from (
    select s.organisation_id, unnest(s.other_reasons || s.reason)::text as reason from app.suppressions s where s.email = person
    union
    -- A consent is erased with its person, and without consent there is no marketing either.
    select c.organisation_id, 'opted_out' from app.consents c where c.phone = person and c.opted_out_at is not null
  ) h
  on conflict do nothing;

  insert into app.global_suppression_hashes as g (sha256, reason, cell, erased_at)
  select v_sha256, h.reason::app.suppression_hash_reason, v_cell,
    -- Newer than the row of a cell that removed the suppression.
    greatest(core.now(), (
      select max(n.removed_at) + interval '1 microsecond' from app.global_suppression_hashes n
      where n.sha256 = v_sha256 and n.reason = h.reason::app.suppression_hash_reason))
  from (
    select 'hard_bounce' as reason from core.hard_bounces_of(person)
    union all
    select 'registry' from core.blocked_numbers_of(person)
  ) h
  on conflict on constraint global_suppression_hashes_pkey do update
  set erased_at = excluded.erased_at, removed_at = null;

  -- Other cells delete their own rows.

  with bounce as (delete from app.hard_bounces b where b.email = person and b.cell = v_cell returning 1),
  suppression as (delete from app.suppressions s where s.email = person returning 1),
  consent as (delete from app.consents c where c.phone = person returning 1),
  number as (delete from app.blocked_numbers b where b.phone = person and b.cell = v_cell returning 1)
  select (select count(*) from bounce) + (select count(*) from suppression) + (select count(*) from consent)
    + (select count(*) from number) into v_rows;
  return v_rows;
end
$$;

comment on function core.hash_suppressions is
  'Replace by a hash whatever forbids sending to an address, in lower case, or a number: hard bounces, suppressions, opt-outs, the opt-out registry. Returns how many rows named the person. Rows that other cells wrote stay until they erase the person too.';
