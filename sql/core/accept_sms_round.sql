-- Refusals are rows, because one exception would undo the other items of the batch.
create function core.accept_sms_round(calls jsonb, items jsonb, catalogue jsonb, round integer)
returns setof core.call_response
language plpgsql volatile
-- The settings are those of core.accept_emails_round.
set enable_seqscan = off
set work_mem = '32MB'
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := core.now();
  v_calls core.checked_call[] := array(select c from core.check_calls(calls, accept_sms_round.round, v_now) c);
  v_sms core.judged_sms[] := core.judge_sms(v_calls, items, v_now);
  v_accepted core.judged_sms[] := array(select s from unnest(v_sms) s where s.refusal is null);
  v_results core.item_result[];
begin
  if v_accepted <> '{}' then
    perform core.insert_sms(v_accepted, items, v_now);
    perform core.charge_sms(v_accepted, v_now);
    perform core.enqueue_sms(v_accepted, v_now);
  end if;

  v_results := array(
    select (s.n, s.index, s.refusal, s.message, s.retry_after, s.fields, s.error, s.data)::core.item_result
    from unnest(v_sms) s);
  return query select * from core.respond_to_calls(v_calls, v_results, catalogue, v_now);
end
$$;

comment on function core.accept_sms_round is
  'Judge the SMS of the calls of a round, then insert, charge and enqueue those that are accepted. The organisations must be locked.';
