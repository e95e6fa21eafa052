create function api.dashboard_sms(
  session text, organisation text,
  phone text default '+', consents_after text default '', ledger_before text default null
)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_sms.session, dashboard_sms.organisation);
begin
  return jsonb_build_object(
    'usage', core.usage_object(v_organisation),
    'sharedSender', (select s.shared_sender from app.sms_settings s),
    'senders', coalesce((
      select jsonb_agg(jsonb_build_object('sender', s.sender, 'approvedAt', core.iso(s.approved_at)) order by s.sender)
      from app.senders s
      where s.organisation_id = v_organisation), '[]'),
    'consents', coalesce((
      select jsonb_agg(jsonb_build_object(
          'phone', c.phone, 'source', c.source, 'consentedAt', core.iso(c.consented_at),
          'optedOutAt', core.iso(c.opted_out_at), 'optedOutBy', c.opted_out_by)
        order by c.phone)
      from (
        select x.* from app.consents x
        where x.organisation_id = v_organisation
          -- The numbers that begin so, as a range of the key: a number has at most 15 digits.
          and x.phone >= dashboard_sms.phone and x.phone <= dashboard_sms.phone || repeat('9', 15)
          and x.phone > dashboard_sms.consents_after
        order by x.phone
        limit core.page_rows() + 1
      ) c), '[]'),
    'ledger', coalesce((
      select jsonb_agg(jsonb_build_object(
          'id', l.id::text, 'at', core.iso(l.created_at), 'kind', l.kind, 'credits', l.credits, 'included', l.included,
          'balance', l.balance, 'message', core.encode_id('sm', l.message_id), 'note', l.note)
        order by l.id desc)
      from (
        select x.* from app.credit_ledger x
        where x.organisation_id = v_organisation
          and (dashboard_sms.ledger_before is null or x.id < dashboard_sms.ledger_before::bigint)
        order by x.id desc
        limit core.page_rows() + 1
      ) l), '[]'));
end
$$;

comment on function api.dashboard_sms is
  'Returns what the SMS page shows: usage (core.usage_object), sharedSender, senders [{sender, approvedAt}], consents [{phone, source, consentedAt, optedOutAt, optedOutBy}] of numbers that begin with phone and follow consents_after, by number, and ledger [{id, at, kind, credits, included, balance, message, note}] before the movement ledger_before (null: all), newest first; of each list a page and one more (core.page_rows). Refuses as core.member_of does.';
