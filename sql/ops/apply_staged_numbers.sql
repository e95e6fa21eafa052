create function ops.apply_staged_numbers(replaces boolean default false, note text default '')
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bad text;
  v_bad_lines bigint;
  v_gone integer := 0;
  v_gone_erased integer;
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
    delete from app.blocked_numbers b
    where not exists (select from ops.staged_numbers s where btrim(s.phone) = b.phone);
    get diagnostics v_gone = row_count;
    delete from app.suppression_hashes e
    where e.reason = 'registry' and not exists (
      select from ops.staged_numbers s, app.person_salt p
      where core.person_sha256(btrim(s.phone), p.salt) = e.sha256);
    get diagnostics v_gone_erased = row_count;
    v_gone := v_gone + v_gone_erased;
  end if;
  insert into app.blocked_numbers (phone, note, created_at)
  select distinct btrim(s.phone), coalesce(apply_staged_numbers.note, ''), core.now()
  from ops.staged_numbers s
  where s.phone is not null
    and not exists (select from core.suppressions_by_hash(btrim(s.phone)) a where a.reason = 'registry')
  on conflict (phone) do nothing;
  get diagnostics v_new = row_count;
  truncate ops.staged_numbers;
  perform core.audit('apply_staged_numbers', null, null, null, jsonb_build_object(
    'new', v_new, 'gone', v_gone, 'replaces', replaces, 'note', apply_staged_numbers.note));
  return v_new;
end
$$;

comment on function ops.apply_staged_numbers is
  'Block the numbers in ops.staged_numbers, either all or none. If a line is wrong, no number is blocked; otherwise the table is empty afterwards. With replaces => true, numbers that are not in the list are unblocked. Returns the number of newly blocked numbers.';
