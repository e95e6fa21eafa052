create function core.page_rows()
returns integer
language sql immutable
as $$
  select 50
$$;

comment on function core.page_rows is
  'Returns how many rows a page of the dashboard shows of a list. A function that returns a list adds one row, which tells that there is a next page.';
