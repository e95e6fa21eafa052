create function core.erase_audit(person text)
returns jsonb
language sql volatile
as $$
  with erased as (
    update app.audit a
    -- A row must show that something changed, even if the redacted text was the only change.
    set target = core.redact(a.target, person), before = nullif(t.before, t.after), after = t.after,
      salt = gen_random_uuid()
    from (
      select x.id, core.redact(w.before::text, person)::jsonb as before, core.redact(w.after::text, person)::jsonb as after
      from app.audit x
      -- A note about a person may say more than their number.
      cross join lateral (select
        case lower(x.target) when person then core.redact_change(x.before) else x.before end as before,
        case lower(x.target) when person then core.redact_change(x.after) else x.after end as after
      ) w
      -- The address of an owner is the organisation's, and users of the dashboard are named as who acted.
      where x.action not in ('create_organisation', 'set_owner_email', 'invite', 'remove_member', 'make_operator',
          'create_sign_in_link', 'sign_out')
        and core.names_person(concat_ws(' ', x.target, x.before, x.after), person)
    ) t
    where a.id = t.id
    returning a
  )
  select coalesce(jsonb_object_agg((e.a).id, encode(core.audit_sha256(e.a), 'hex')), '{}') from erased e
$$;

comment on function core.erase_audit is
  'Redact a person in the audit. Returns the changed rows, {id: new SHA-256}, for the audit of the erasure itself.';
