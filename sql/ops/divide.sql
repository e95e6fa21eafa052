create function ops.divide(
  number integer, proof text default null,
  out kept_organisations bigint, out moved_organisations bigint, out deleted_api_keys bigint,
  out left_messages bigint, out proof_for_old_cell text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_own smallint := core.cell_number();
  v_division app.division;
  v_becomes_other boolean;
  v_moving uuid[];
begin
  if divide.number is null or divide.number not between 1 and 26 then
    raise exception 'the number must be from 1 to 26';
  end if;
  perform core.lock_division();
  select d.* into v_division from app.division d for update;
  if v_division.id is null then
    raise exception 'the cell is not being divided' using hint = 'select ops.example(''begin_division'')';
  end if;
  v_becomes_other := divide.number = v_division.number;
  if not v_becomes_other and divide.number <> v_own then
    raise exception 'the number must be %, in the copy, or %, in the old cell', v_division.number, v_own;
  elsif v_becomes_other and not core.is_copy(v_division) then
    raise exception 'this is the old cell; run ops.divide(%) in the copy once it is promoted', v_division.number;
  elsif not v_becomes_other and divide.proof is distinct from core.division_proof(v_division) then
    raise exception 'the proof is wrong: ops.divide(%) in the copy returns it', v_division.number
      using hint = format('select proof_for_old_cell from ops.divide(%s)', v_division.number);
  end if;

  v_moving := case when v_becomes_other then array(
      select o.id from app.organisations o
      where o.id <> all (v_division.organisation_ids)
        and not exists (select from app.moved_organisations d where d.organisation_id = o.id))
    else v_division.organisation_ids end;
  if v_becomes_other then
    perform core.leave_to_old_cell(v_moving);
  end if;
  select d.api_keys, d.messages into deleted_api_keys, left_messages
  from core.move_out(v_moving, case when v_becomes_other then v_own else v_division.number end) d;
  if v_becomes_other then
    perform core.become_cell(v_division.number, v_division.name);
    proof_for_old_cell := core.division_proof(v_division);
  end if;
  delete from app.division;

  moved_organisations := cardinality(v_moving);
  select count(*) into kept_organisations
  from app.organisations o
  where not exists (select from app.moved_organisations d where d.organisation_id = o.id);
  perform core.audit('divide', null, divide.number::text, jsonb_build_object('number', v_own), jsonb_build_object(
    'number', divide.number, 'other_cell', case when v_becomes_other then v_own else v_division.number end,
    'moved', array(select core.encode_id('org', i) from unnest(v_moving) i order by i)));
end
$$;

comment on function ops.divide is
  'Finish a division. First in the promoted copy with the new number: it becomes that cell and keeps the organisations that ops.begin_division named. Then in the old cell with its own number and the proof from the copy: it keeps the others. Each half deletes API keys, users, domains and waiting work of the other''s organisations at once; the clock deletes their messages. Raises an error while a process is running.';
