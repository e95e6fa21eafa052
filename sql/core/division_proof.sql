create function core.division_proof(division app.division)
returns text
language sql immutable
as $$
  select left(encode(sha256(convert_to(division.id || ' ' || division.number, 'UTF8')), 'hex'), 32)
$$;

comment on function core.division_proof is
  'Returns the text by which the old cell knows that the copy has taken its organisations. It protects from mistakes, not from attackers.';
