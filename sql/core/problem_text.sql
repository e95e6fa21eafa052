create function core.problem_text(detail jsonb, recipients integer)
returns text
language sql immutable
as $$
  select case
    when recipients > 1 and detail ? 'recipient' then concat_ws(': ', detail ->> 'recipient', detail ->> 'text')
    else detail ->> 'text'
  end
$$;

comment on function core.problem_text is
  'The error message that an event''s detail makes: of an email to several recipients, it names the one that it is about.';
