create function api.unsubscribe(organisation_id uuid, email text, message_id uuid)
returns text
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.unsubscribe(organisation_id, email, message_id)
$$;

comment on function api.unsubscribe is
  'Suppress marketing from an organisation to an address (in lower case), whose owner followed the unsubscribe link in this message. If the organisation moved to another cell, that cell does so within minutes. Returns the organisation''s name; null if it does not exist. A repeated call changes nothing.';
