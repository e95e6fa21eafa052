-- Refusals are rows, because one exception would undo the other items of the batch.
create function core.accept_emails_round(
  calls jsonb, items jsonb, catalogue jsonb, round integer, sized core.sized_email[], templates core.parsed_template[]
)
returns setof core.call_response
language plpgsql volatile
set enable_seqscan = off
-- A thousand emails go through sorts; on disk these would take ten times as long.
set work_mem = '32MB'
-- To plan takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := core.now();
  v_calls core.checked_call[] := array(select c from core.check_calls(calls, accept_emails_round.round, v_now) c);
  v_emails core.judged_email[] := core.judge_emails(v_calls, items, sized, v_now);
  v_accepted core.judged_email[] := array(select e from unnest(v_emails) e where e.refusal is null);
  v_results core.item_result[];
begin
  if cardinality(v_accepted) < cardinality(v_emails) then
    perform core.count_named_bounces(v_emails, v_now);
  end if;

  if v_accepted <> '{}' then
    perform core.insert_emails(v_accepted, items, sized, templates, v_now);

    update app.allowances a
    set emails_used = a.emails_used + u.recipients, messages_accepted = a.messages_accepted + u.messages,
      test_messages = u.free + case when a.test_day = u.day then a.test_messages else 0 end, test_day = u.day
    from (
      select e.organisation_id, coalesce(sum(e.recipients) filter (where not e.is_free), 0) as recipients,
        count(*) filter (where e.mode = 'live') as messages, count(*) filter (where e.is_free) as free,
        (v_now at time zone 'UTC')::date as day
      from unnest(v_accepted) e
      group by e.organisation_id
    ) u
    where a.organisation_id = u.organisation_id;

    perform core.add_jobs(core.send_jobs('email', array(
      select (e.id, core.priority(e.backlog + e.place, e.class), null)::core.message_to_enqueue
      from (
        select q.n, q.index, q.id, q.class, q.backlog,
          row_number() over (partition by q.organisation_id order by q.n, q.index) as place
        from unnest(v_accepted) q
        where q.mode = 'live'
      ) e
      order by e.n, e.index)));
  end if;

  v_results := array(
    select (e.n, e.index, e.refusal, e.message, e.retry_after, e.fields, e.error,
      format('{"id":"%s","status":"queued"}', core.encode_id('em', e.id)))::core.item_result
    from unnest(v_emails) e);
  return query select * from core.respond_to_calls(v_calls, v_results, catalogue, v_now);
end
$$;

comment on function core.accept_emails_round is
  'Judge the emails of the calls of a round, then insert, count and enqueue those that are accepted. The organisations must be locked. sized and templates: of core.size_emails; null when no item has a template.';
