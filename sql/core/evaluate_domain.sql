-- A domain is pending for at most 72 hours. A verified domain fails when its records have been wrong for
-- 72 hours. A record whose lookup failed changes nothing: a DNS outage is not a missing record.
create function core.evaluate_domain(domain_id uuid, is_active boolean, records jsonb)
returns app.domains
language plpgsql volatile
as $$
declare
  v_now timestamptz := core.now();
  v_old app.domains;
  v_domain app.domains;
  v_is_correct boolean;
  v_is_wrong boolean;
  v_is_claimed boolean := false;
begin
  select d.* into v_old from app.domains d where d.id = evaluate_domain.domain_id for no key update;
  if v_old.id is null then
    return null;
  end if;
  select is_active and bool_and(r.status = 'verified'),
    not is_active or bool_or(r.status in ('missing', 'mismatch')) into v_is_correct, v_is_wrong
  from jsonb_to_recordset(evaluate_domain.records) as r (required boolean, status text)
  where r.required;

  -- Of two cells, the earlier claim wins. The later one goes on as if its records were wrong.
  if v_old.status <> 'verified' and v_is_correct then
    v_is_claimed := core.is_claimed_elsewhere(v_old.name, v_now);
    v_is_correct := not v_is_claimed;
  end if;

  v_domain := v_old;
  v_domain.records := evaluate_domain.records;
  v_domain.last_checked_at := v_now;
  v_domain.wrong_since := case when v_is_wrong and v_old.status = 'verified' then coalesce(v_old.wrong_since, v_now) end;
  if v_old.status <> 'verified' and v_is_correct then
    v_domain.status := 'verified';
    v_domain.verified_at := v_now;
  elsif v_old.status = 'pending' and (v_is_wrong or v_is_claimed) and v_old.created_at <= v_now - interval '72 hours'
    or v_old.status = 'verified' and not v_old.is_manually_verified and v_domain.wrong_since <= v_now - interval '72 hours' then
    v_domain.status := 'failed';
    v_domain.wrong_since := null;
  end if;
  v_domain.next_check_at := case
    when v_domain.status = 'pending' then v_now + interval '5 minutes'
    -- Spreads the daily checks over the day.
    when v_domain.status = 'verified' and v_old.status <> 'verified' then v_now + random() * interval '24 hours'
    when v_domain.status = 'verified' then least(v_now + interval '24 hours', v_domain.wrong_since + interval '72 hours')
  end;

  update app.domains d
  set (status, records, wrong_since, verified_at, last_checked_at, next_check_at, check_started_at) =
    (v_domain.status, v_domain.records, v_domain.wrong_since, v_domain.verified_at, v_domain.last_checked_at, v_domain.next_check_at, null)
  where d.id = evaluate_domain.domain_id;
  perform core.update_name_claim(v_domain.name);
  perform core.audit('evaluate_domain', v_domain.organisation_id, v_domain.name,
    jsonb_build_object('status', v_old.status), jsonb_build_object('status', v_domain.status));
  if v_domain.status = 'failed' and v_old.status <> 'failed' then
    perform core.end_claim(v_domain);
    perform core.notify_owner(v_domain.organisation_id,
      case v_old.status when 'verified' then 'domain_failed' else 'domain_not_found' end,
      jsonb_build_object('domain', v_domain.name, 'records', core.wrong_records(v_domain.records)));
  end if;
  return v_domain;
end
$$;

comment on function core.evaluate_domain is
  'Apply the result of a check to a domain: status, next check, and a notice to the owner if the domain failed. Returns the domain; null if it does not exist.';
