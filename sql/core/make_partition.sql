create function core.make_partition(parent text, bounds_from text, bounds_to text, name text)
returns integer
language plpgsql volatile
as $$
begin
  if to_regclass(format('app.%I', name)) is not null then
    return 0;
  end if;
  -- Made apart and then attached: "create table … partition of" would lock senders out.
  execute format('create table app.%I (like app.%I including all)', name, parent);
  if parent = 'messages' then
    -- Room on each page for the two or three changes of a message's life.
    execute format('alter table app.%I set (fillfactor = 60)', name);
  end if;
  execute format('alter table app.%I attach partition app.%I for values from (%L) to (%L)', parent, name, bounds_from, bounds_to);
  return 1;
end
$$;

comment on function core.make_partition is 'Make one partition of a table unless it is there; answers how many were made.';
