create function core.hash_suppressions(person text)
returns integer
language plpgsql volatile
as $$
declare
  v_sha256 bytea := (select core.person_sha256(person, s.salt) from app.person_salt s);
  v_count integer;
begin
  -- Both in the order in which receipts write them.
  perform from app.hard_bounces b where b.email = person for update;
  perform from app.suppressions s where s.email = person order by s.organisation_id for update;
  with bounce as (
    delete from app.hard_bounces b where b.email = person returning 1
  ),
  entry as (
    delete from app.suppressions s where s.email = person returning s.*
  ),
  consent as (
    delete from app.consents c where c.phone = person returning c.*
  ),
  blocked as (
    delete from app.blocked_numbers b where b.phone = person returning 1
  ),
  kept as (
    insert into app.suppression_hashes (sha256, organisation_id, reason, erased_at)
    select v_sha256, b.organisation_id, b.reason::app.suppression_hash_reason, core.now()
    from (
      select null::uuid as organisation_id, 'hard_bounce' as reason from bounce
      union
      select e.organisation_id, unnest(e.other_reasons || e.reason)::text from entry e
      union
      -- Consent is gone with who gave it, and without any there is no marketing either.
      select c.organisation_id, 'opted_out' from consent c where c.opted_out_at is not null
      union
      select null, 'registry' from blocked
    ) b
    on conflict do nothing
  )
  select (select count(*) from bounce) + (select count(*) from entry) + (select count(*) from consent)
      + (select count(*) from blocked)
    into v_count;
  return v_count;
end
$$;

comment on function core.hash_suppressions is
  'Keep by hash only what stands against sending to an address, in lower case, or a number: hard bounces, suppressions, opt-outs, the registry. Answers how many rows named it.';
