create function api.enqueue_due_domain_checks(provider text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_jobs graphile_worker.job_spec[];
begin
  -- A process that is gone may have left a reservation, which ends, or a removal, which did not happen. The
  -- next check restores at the provider what that removal deleted there.
  delete from app.domains d
  where d.change = 'adding' and not core.is_under_way(d.change_since);
  update app.domains d
  set change = null, change_since = null, next_check_at = case when d.organisation_id is not null then core.now() end
  where d.change = 'removing' and not core.is_under_way(d.change_since);
  delete from app.domain_claims c
  where greatest(c.asked_at, c.barred_until) < core.now() - interval '14 days';

  -- After a change of provider every domain is created at the new one at once, because it may be the one that
  -- signs. A domain checked in the last 5 minutes waits: the new provider may have refused it just now, and
  -- the clock would ask again every minute.
  update app.domains d
  set next_check_at = core.now()
  where d.provider <> enqueue_due_domain_checks.provider and d.next_check_at > core.now() + interval '5 minutes'
    and d.last_checked_at <= core.now() - interval '5 minutes' and d.change is null;

  with due as (
    select d.id, d.next_check_at
    from app.domains d
    where d.next_check_at <= core.now() + interval '60 seconds' and d.change is null
    order by d.next_check_at
    limit 1000
    for no key update skip locked
  ),
  begun as (
    -- Sets the next check before this one, which may never finish.
    update app.domains d
    set next_check_at = core.now() + case
      when d.status = 'verified' and d.provider is not distinct from enqueue_due_domain_checks.provider then interval '24 hours'
      else interval '5 minutes'
    end
    from due
    where d.id = due.id
  )
  select array_agg((
    'check_domain', json_build_object('id', due.id), null, now() + (due.next_check_at - core.now()), 5,
    'check_domain:' || due.id, 100::smallint, null
  )::graphile_worker.job_spec) into v_jobs
  from due;
  return core.add_jobs(v_jobs);
end
$$;

comment on function api.enqueue_due_domain_checks is
  'Enqueue the checks of domains that fall due within a minute: a pending domain every five minutes, a verified one daily, and one of another provider than this at once. Finish what processes that are gone left. Returns how many, at most 1 000.';
