create function core.suppression_object(s app.suppressions)
returns json
language sql stable
as $$
  select json_build_object(
    'id', core.encode_id('sup', s.id),
    'email', s.email,
    'reason', s.reason,
    'messageId', core.encode_id('em', s.message_id),
    'note', s.note,
    'createdAt', core.iso(s.created_at)
  )
$$;

comment on function core.suppression_object is 'Returns the suppression object of the API.';
