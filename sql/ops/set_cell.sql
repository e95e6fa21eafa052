create function ops.set_cell(number integer, name text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old app.cell;
begin
  select c.* into v_old from app.cell c for update;
  if set_cell.number is null or set_cell.number not between 1 and 26 then
    raise exception 'the number must be from 1 to 26';
  elsif coalesce(length(set_cell.name), 0) not between 1 and 100 then
    raise exception 'the name must have 1 to 100 characters';
  end if;
  if set_cell.number <> v_old.number then
    if exists (select from app.cells) then
      raise exception 'other cells know this cell as number %', v_old.number using hint = 'run the command "leave" for each first';
    elsif exists (select from app.api_keys) then
      raise exception 'API keys of cell % exist, and a router finds this cell by them', v_old.number
        using hint = 'the number can be set before the first API key is created';
    elsif core.is_former_cell(set_cell.number) then
      raise exception 'the lists hold rows of a former cell %', set_cell.number using hint = 'choose another number';
    end if;
    update app.hard_bounces b set cell = set_cell.number where b.cell = v_old.number;
    update app.blocked_numbers b set cell = set_cell.number where b.cell = v_old.number;
    update app.global_suppression_hashes g set cell = set_cell.number where g.cell = v_old.number;
    update app.name_claims c set cell = set_cell.number where c.cell = v_old.number;
  end if;
  update app.cell c set number = set_cell.number, name = set_cell.name;
  perform core.audit('set_cell', null, set_cell.number::text,
    jsonb_build_object('number', v_old.number, 'name', v_old.name),
    jsonb_build_object('number', set_cell.number, 'name', set_cell.name));
  return (select c.letter from app.cell c);
end
$$;

comment on function ops.set_cell is
  'Set number and name of this cell, before other cells are joined and before its first API key is created. A service without other cells is cell 1 and needs neither. Returns the letter of the number, which is in the API keys of every cell but the first.';
