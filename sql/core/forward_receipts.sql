create function core.forward_receipts(kind text, contents jsonb)
returns void
language sql volatile
as $$
  insert into app.forwarded_receipts (cell, id, kind, content, received_at)
  select core.cell_number(), md5(forward_receipts.kind || c.content::text)::uuid, forward_receipts.kind, c.content, core.now()
  from jsonb_array_elements(contents) as c (content)
  where exists (select from app.cells)
  -- The id is a hash of the content, so that a repeated receipt is forwarded once.
  on conflict do nothing
$$;

comment on function core.forward_receipts is
  'Give receipts, keywords or unsubscribes, an array of what app.forwarded_receipts.kind says, to the other cells. Does nothing without other cells.';
