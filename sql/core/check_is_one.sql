create function core.check_is_one(kind text, given text, candidates text[], hint text)
returns void
language plpgsql immutable
as $$
declare
  v_count integer := cardinality(candidates);
  v_given text := coalesce(quote_literal(left(given, 60)), 'null');
begin
  if v_count = 0 then
    raise exception 'there is no % %', kind, v_given using hint = hint;
  elsif v_count > 1 then
    raise exception '% matches % %s', v_given, case when v_count > 10 then 'more than 10' else v_count::text end, kind
      using hint = format('use one of these IDs: %s%s', array_to_string(candidates[:10], ', '),
        case when v_count > 10 then ' and others' end);
  end if;
end
$$;

comment on function core.check_is_one is
  'Raises an error unless there is exactly one candidate. The hint of several candidates lists up to 10 of them with their IDs; hint is used if there is none.';
