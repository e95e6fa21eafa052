import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { caller } from '../../src/db/call.ts'
import { createDatabase, rolledBack, type Tx, untilLocked } from '../fixtures/database.ts'
import { get, request } from '../fixtures/http.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation, suppress, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const [organisation, other] = [await createOrganisation(sql), await createOrganisation(sql)]
const { domain } = organisation

const reasons = enums.suppression_reason
const addressOf = (reason: string) => `${reason.replace('_', '-')}@x.example`

async function suppressed(tx: Tx, recipients: string[], ofClass: string, owner = organisation) {
  const rows = await tx<{ email: string; reason: string }[]>`
    select s.email, s.reason
    from core.suppressed(core.decode_id('org', ${owner.id}), ${recipients}, ${ofClass}::app.class) s`
  return rows.map(({ email, reason }) => `${email}: ${reason}`).sort()
}

async function domainsFor(tx: Tx, fromDomain: string, owner = organisation) {
  const rows = await tx<{ name: string }[]>`
    select d.name from core.sending_domain(core.decode_id('org', ${owner.id}), ${fromDomain}) d`
  return rows.map(({ name }) => name).sort()
}

t.test('suppressed: bounces, complaints and manual entries block both classes', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const reason of reasons) await suppress(tx, organisation, addressOf(reason), reason)
    const recipients = reasons.map(addressOf)
    const blocked = reasons.map((reason) => `${addressOf(reason)}: ${reason}`).sort()
    t.same(
      await suppressed(tx, recipients, 'transactional'),
      blocked.filter((line) => !line.includes('unsubscribe')),
      'an unsubscription blocks marketing only',
    )
    t.same(await suppressed(tx, recipients, 'marketing'), blocked)
  })
})

t.test("suppressed: an organisation's entries apply to it alone", async (t) => {
  await rolledBack(sql, async (tx) => {
    await suppress(tx, other, addressOf('complaint'), 'complaint')
    t.same(await suppressed(tx, [addressOf('complaint')], 'marketing'), [])
    t.same(await suppressed(tx, [addressOf('complaint')], 'marketing', other), [
      'complaint@x.example: complaint',
    ])
  })
})

t.test('suppressed: a hard bounce applies to every organisation', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.suppress_globally('Gone@X.example', 'no such mailbox')`
    for (const owner of [organisation, other]) {
      for (const ofClass of ['transactional', 'marketing']) {
        t.same(await suppressed(tx, ['gone@x.example', 'here@x.example'], ofClass, owner), [
          'gone@x.example: hard_bounce',
        ])
      }
    }
  })
})

t.test(
  "suppressed: an address on both lists is returned once, with the organisation's reason",
  async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`select ops.suppress_globally('gone@x.example')`
      await suppress(tx, organisation, 'gone@x.example', 'unsubscribe')
      t.same(await suppressed(tx, ['gone@x.example'], 'marketing'), ['gone@x.example: unsubscribe'])
      t.same(await suppressed(tx, ['gone@x.example'], 'transactional'), [
        'gone@x.example: hard_bounce',
      ])
    })
  },
)

t.test('suppressed: no addresses give no result', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.same(await suppressed(tx, [], 'marketing'), [])
    t.same(await suppressed(tx, ['%@x.example', '', "a'b@x.example"], 'marketing'), [])
  })
})

t.test('sending_domain: allows a verified domain and its subdomains', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.same(await domainsFor(tx, domain), [domain])
    t.same(await domainsFor(tx, `mail.${domain}`), [domain])
    t.same(await domainsFor(tx, `a.b.c.${domain}`), [domain])
    await tx`select ops.verify_domain(${organisation.id}, ${`b.${domain}`})`
    t.same(await domainsFor(tx, `a.b.${domain}`), [`b.${domain}`], 'the nearest')
  })
})

t.test('sending_domain: refuses a name that only ends like a verified domain', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const name of [
      `x${domain}`,
      `${domain}.evil.example`,
      domain.slice(1),
      domain.replace('.', 'x'),
      'example',
      `${domain}.`,
      '',
      '%',
      `.${domain.slice(1)}`,
    ]) {
      t.same(await domainsFor(tx, name), [], name)
    }
  })
})

t.test('sending_domain: refuses unverified and foreign domains', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.same(await domainsFor(tx, other.domain), [])
    for (const status of ['pending', 'failed']) {
      await tx`update app.domains set status = ${status} where name = ${domain}`
      t.same(await domainsFor(tx, domain), [], status)
    }
  })
})

type Happening = 'bounced' | 'complained' | 'opted_out' | 'link' | 'by hand'

let count = 0

/** Something that suppresses an address for an organisation. */
async function happen(
  organisation: TestOrganisation,
  message: string,
  what: Happening[],
  email: string,
) {
  const receipts = what.filter((one) => one !== 'link' && one !== 'by hand')
  if (receipts.length > 0) {
    await sql`update app.bodies set recipients = array[${email}::text]
      where message_id = core.decode_id('em', ${message})`
    await sql`
      select core.record_receipts((
        select jsonb_agg(jsonb_build_object('message_id', core.decode_id('em', ${message}), 'type', r.type,
          'provider_event_id', ${`event-${count++}`} || r.type, 'occurred_at', now(), 'recipient', ${email}::text,
          'is_hard', r.type = 'bounced'))
        from unnest(${receipts}::text[]) r (type)))`
  }
  const owner = sql`core.decode_id('org', ${organisation.id})`
  if (what.includes('link')) {
    await sql`select api.unsubscribe(${owner}, ${email}, core.decode_id('em', ${message}))`
  }
  if (what.includes('by hand')) {
    await sql`
      select api.add_suppression(${owner}, 'live', 'x', ${email}, 'manual', '')`
  }
}

const entryOf = async ({ liveKey }: TestOrganisation, email: string) => {
  const { json } = await get(`${base}/v1/suppressions?email=${encodeURIComponent(email)}`, liveKey)
  return json.data[0] as { id: string; reason: string } | undefined
}
const lift = async ({ liveKey }: TestOrganisation, id: string) =>
  (await request('DELETE', `${base}/v1/suppressions/${id}`, liveKey)).status

t.test('suppressions: the stronger reason shows in any order and no reason is lost', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await send(base, organisation)
  const orders: Happening[][][] = [
    [['bounced'], ['complained'], ['opted_out']],
    [['opted_out'], ['complained'], ['bounced']],
    [['complained'], ['link'], ['bounced']],
    [['complained', 'bounced', 'opted_out']],
    [['opted_out', 'complained'], ['bounced'], ['opted_out', 'bounced']],
  ]
  for (const [place, order] of orders.entries()) {
    const email = `order${place}@example.com`
    for (const what of order) await happen(organisation, message, what, email)
    t.match(await entryOf(organisation, email), { reason: 'hard_bounce' }, JSON.stringify(order))
    await sql`select ops.unsuppress_globally(${email})`
    const complaint = await entryOf(organisation, email)
    t.match(complaint, { reason: 'complaint' }, 'a bounce that is forgiven uncovers the complaint')
    t.equal(await lift(organisation, complaint?.id ?? ''), 200)
    const unsubscribe = await entryOf(organisation, email)
    t.match(unsubscribe, { reason: 'unsubscribe' }, 'and that the unsubscription')
    t.equal(await lift(organisation, unsubscribe?.id ?? ''), 200)
    t.equal(await entryOf(organisation, email), undefined)
  }
})

t.test('delete_suppression: an unsubscribe stays after a manual entry is removed', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await send(base, organisation)
  const email = 'left@example.com'
  await happen(organisation, message, ['by hand'], email)
  await happen(organisation, message, ['link'], email)
  await happen(organisation, message, ['link'], email)
  const entry = await entryOf(organisation, email)
  t.match(entry, { reason: 'manual' }, 'an entry of the organisation stays what it is')
  t.equal(await lift(organisation, entry?.id ?? ''), 200)
  const next = await entryOf(organisation, email)
  t.match(next, { reason: 'unsubscribe' })
  t.not(next?.id, entry?.id)
  t.equal(await lift(organisation, entry?.id ?? ''), 404, 'the removed entry stays removed')
})

t.test('ops.unsuppress_globally: removes a hard bounce among the other reasons', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await send(base, organisation)
  const email = 'other_reasons@example.com'
  await happen(organisation, message, ['by hand'], email)
  await happen(organisation, message, ['bounced'], email)
  t.match(await entryOf(organisation, email), { reason: 'manual' })
  await sql`select ops.unsuppress_globally(${email})`
  const entry = await entryOf(organisation, email)
  t.equal(await lift(organisation, entry?.id ?? ''), 200)
  t.equal(await entryOf(organisation, email), undefined)
})

t.test('delete_suppression: a hard bounce stays after a manual entry is removed', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await send(base, organisation)
  const email = 'still@example.com'
  await happen(organisation, message, ['by hand'], email)
  await happen(organisation, message, ['bounced'], email)
  const entry = await entryOf(organisation, email)
  t.equal(await lift(organisation, entry?.id ?? ''), 200)
  t.match(await entryOf(organisation, email), { reason: 'hard_bounce' })
})

t.test('ops.unsuppress_globally: a concurrent hard bounce leaves no copy', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await send(base, organisation)
  const email = 'meanwhile@example.com'
  await sql`select ops.suppress_globally(${email})`
  const { lifted } = await sql.begin(async (tx) => {
    await tx`
      select core.suppress_recipients(array[(
        core.decode_id('em', ${message}), 'bounced', jsonb_build_object('recipient', ${email}::text)
      )::core.stored_receipt])`
    let isOver = false
    const lifted = sql`select ops.unsuppress_globally(${email})`.then(() => {
      isOver = true
    })
    await until('it to be lifted, or to wait', async () => {
      const [row] = await sql<{ isWaiting: boolean }[]>`
        select count(*) > 0 as is_waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      return isOver || row?.isWaiting
    })
    return { lifted }
  })
  await lifted
  t.equal(await entryOf(organisation, email), undefined)
})

t.test(
  'api.unsubscribe: no deadlock with a transaction that locks message and allowance',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { id } = await messageOf(sql, await send(base, organisation, { to: 'jane@c.example' }))
    const [org] = await sql<
      { id: string }[]
    >`select core.decode_id('org', ${organisation.id}) as id`
    const organisation_id = org?.id ?? ''

    const { unsubscribed } = await sql.begin(async (tx) => {
      await tx`select from app.messages where id = ${id} for update`
      const unsubscribed = caller(sql)('unsubscribe', {
        organisation_id,
        email: 'jane@c.example',
        message_id: id,
      })
      await untilLocked(sql)
      // Waits for ever, so that Postgres ends one of the two, if the call holds the allowance.
      await tx`select core.lock_organisations(array[${organisation_id}::uuid])`
      return { unsubscribed }
    })
    t.equal(typeof (await unsubscribed), 'string')
  },
)
