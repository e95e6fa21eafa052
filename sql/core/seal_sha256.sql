create function core.seal_sha256(previous bytea, id bigint, sealed_at timestamptz, rows bigint, hashes bytea)
returns bytea
language sql stable
as $$
  select sha256(previous || convert_to(jsonb_build_array(id, extract(epoch from sealed_at), rows)::text, 'UTF8') || hashes)
$$;

comment on function core.seal_sha256 is
  'Returns the SHA-256 of a seal: over the previous seal (empty for the first) and the hashes of the sealed rows.';
