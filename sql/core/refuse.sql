create function core.refuse(code text, fields jsonb default null)
returns void
language plpgsql volatile
as $$
begin
  raise exception using errcode = 'MSREF', message = code, detail = coalesce(fields::text, '');
end
$$;

comment on function core.refuse is
  'Refuse a call with a code of interface section 7: rolls back and reaches the caller as a Refusal.';
