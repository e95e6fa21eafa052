create function ops.apply_staged_numbers(replaces boolean default false, note text default '')
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bad text;
  v_bad_lines bigint;
  v_gone text[] := '{}';
  v_gone_erased bytea[] := '{}';
  v_new integer;
begin
  if replaces is null then
    raise exception 'replaces must be true or false';
  elsif length(apply_staged_numbers.note) > 1000 then
    raise exception 'the note must be at most 1000 characters';
  end if;
  -- Lines copied by others in the meantime wait and belong to the next call.
  lock table ops.staged_numbers in access exclusive mode;
  if not exists (select from ops.staged_numbers s where s.phone is not null) then
    raise exception 'ops.staged_numbers is empty'
      using hint = '\copy ops.staged_numbers from ''numbers.csv'' csv';
  end if;
  select (array_agg(s.phone order by s.ctid))[1], count(*) into v_bad, v_bad_lines
  from ops.staged_numbers s
  where not core.is_phone(btrim(s.phone));
  if v_bad_lines > 0 then
    raise exception '% is not a number in E.164, such as +27821234567 (the first of %); no number was blocked',
      quote_literal(left(translate(v_bad, E'\r\n', '  '), 50)), core.counted(v_bad_lines, 'wrong line')
      using hint = 'delete from ops.staged_numbers; then correct the file and copy it again';
  end if;
  if replaces then
    v_gone := array(
      select b.phone
      from (select distinct b.phone from app.blocked_numbers b) p
      cross join lateral core.blocked_numbers_of(p.phone) b
      where not exists (select from ops.staged_numbers s where btrim(s.phone) = b.phone));
    perform core.unblock_numbers(v_gone);
    v_gone_erased := array(
      select distinct g.sha256
      from app.global_suppression_hashes g
      where g.reason = 'registry' and g.removed_at is null and not exists (
        select from ops.staged_numbers s, app.person_salt p
        where core.person_sha256(btrim(s.phone), p.salt) = g.sha256));
    perform core.remove_global_hashes(v_gone_erased, 'registry');
  end if;
  v_new := core.block_numbers(
    array(select btrim(s.phone) from ops.staged_numbers s where s.phone is not null),
    coalesce(apply_staged_numbers.note, ''));
  truncate ops.staged_numbers;
  perform core.audit('apply_staged_numbers', null, null, null, jsonb_build_object(
    'new', v_new, 'gone', cardinality(v_gone) + cardinality(v_gone_erased), 'replaces', replaces, 'note', apply_staged_numbers.note));
  return v_new;
end
$$;

comment on function ops.apply_staged_numbers is
  'Block the numbers in ops.staged_numbers, either all or none. If a line is wrong, no number is blocked; otherwise the table is empty afterwards. With replaces => true, numbers that are not in the list are unblocked. Returns the number of newly blocked numbers.';
