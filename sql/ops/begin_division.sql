create function ops.begin_division(number integer, name text, organisations text[])
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_own smallint := core.cell_number();
  v_ids uuid[];
  v_sms bigint;
  v_prefixes text[];
begin
  if begin_division.number is null or begin_division.number not between 1 and 26 then
    raise exception 'the number must be from 1 to 26';
  elsif coalesce(length(begin_division.name), 0) not between 1 and 100 then
    raise exception 'the name must have 1 to 100 characters';
  elsif begin_division.number = v_own then
    raise exception 'this cell has the number %; give the copy another one', v_own;
  elsif exists (select from app.cells c where c.number = begin_division.number) then
    raise exception 'this cell has joined a cell %; choose another number', begin_division.number
      using hint = 'select number, name from ops.cells';
  elsif core.is_former_cell(begin_division.number) then
    raise exception 'the lists hold rows of a former cell %; choose another number', begin_division.number;
  elsif coalesce(cardinality(organisations), 0) = 0 then
    raise exception 'give at least one organisation that moves to the copy';
  end if;
  v_ids := array(select distinct core.organisation_id(o) from unnest(organisations) o);
  if not exists (
    select from app.organisations o
    where o.id <> all (v_ids) and not exists (select from app.moved_organisations d where d.organisation_id = o.id)
  ) then
    raise exception 'at least one organisation must stay in this cell';
  end if;
  perform core.lock_division();
  if exists (select from app.division) then
    raise exception 'the cell is being divided already' using hint = 'select * from ops.division';
  end if;
  v_sms := core.unsettled_sms();
  if v_sms > 0 then
    raise exception '% SMS have an attempt without a known outcome; start the service, let it finish them, and stop it with SIGTERM', v_sms;
  end if;
  v_prefixes := core.shared_prefixes(v_ids);
  if v_prefixes <> '{}' then
    raise exception 'API keys of both halves begin with %, and a router cannot tell them apart; revoke one of them', v_prefixes[1]
      using hint = format('select organisation, prefix from ops.api_keys where prefix = %L', v_prefixes[1]);
  end if;
  insert into app.division (id, number, name, organisation_ids, database, timeline, begun_at)
  select gen_random_uuid(), begin_division.number, begin_division.name, v_ids, d.oid, core.server_timeline(), now()
  from pg_database d
  where d.datname = current_database();
  perform core.audit('begin_division', null, begin_division.number::text, null, jsonb_build_object(
    'name', begin_division.name, 'organisations', array(select core.encode_id('org', i) from unnest(v_ids) i order by i)));
  return cardinality(v_ids);
end
$$;

comment on function ops.begin_division is
  'Begin to divide this cell: these organisations will move to a copy of its database. The copy becomes the cell with this number. Stop all processes with SIGTERM before it. From then on no process starts, here or on a copy, until ops.divide or ops.end_division. Returns the number of organisations. Raises an error while a process is running, while the outcome of an SMS is not known, or if API keys of both halves begin alike.';
