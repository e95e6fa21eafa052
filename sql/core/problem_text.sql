create function core.problem_text(detail jsonb, recipients integer)
returns text
-- Most messages have no problem, and Postgres does not call it for them.
language plpgsql immutable strict
as $$
begin
  return case
    when recipients > 1 and detail ? 'recipient' then concat_ws(': ', detail ->> 'recipient', detail ->> 'text')
    else detail ->> 'text'
  end;
end
$$;

comment on function core.problem_text is
  'Returns the error message for an event''s detail. For an email to several recipients it names the recipient.';
