import t from 'tap'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const { id: organisation } = await createOrganisation(sql)

type Found = 'verified' | 'missing' | 'mismatch' | 'pending'
type Domain = {
  status: string
  verifiedAt: Date | null
  wrongSince: Date | null
  nextCheckAt: Date | null
  hoursToNextCheck: number | null
}

/** The records of a domain, the required ones as found, and a suggested one that is never there. */
const records = (...found: Found[]) => [
  ...found.map((status, place) => ({
    purpose: 'dkim',
    type: 'CNAME',
    name: `pg${place + 1}._domainkey.shop.example`,
    value: 'x',
    required: true,
    status,
    found: [],
  })),
  {
    purpose: 'dmarc',
    type: 'TXT',
    name: '_dmarc.shop.example',
    value: 'x',
    required: false,
    status: 'missing',
    found: [],
  },
]

/** A domain that was made, and has been wrong, so long ago. */
async function given(
  tx: Tx,
  status: string,
  { age = '1 hour', wrongFor = null as string | null, isManuallyVerified = false } = {},
): Promise<string> {
  const [row] = await tx<{ id: string }[]>`
    insert into app.domains (id, organisation_id, name, status, is_manually_verified, verified_at, wrong_since, created_at)
    values (gen_random_uuid(), core.decode_id('org', ${organisation}), 'shop.example', ${status}, ${isManuallyVerified},
      case when ${status} = 'verified' then now() - ${age}::interval end, now() - ${wrongFor}::interval,
      now() - ${age}::interval)
    returning id`
  return row?.id ?? ''
}

/** Returns the domain after a check. */
async function judged(tx: Tx, id: string, isActive: boolean, found: Found[]): Promise<Domain> {
  const [row] = await tx<Domain[]>`
    select d.status, d.verified_at, d.wrong_since, d.next_check_at,
      (extract(epoch from d.next_check_at - now()) / 3600)::float as hours_to_next_check
    from core.evaluate_domain(${id}, ${isActive}, ${tx.json(records(...found))}) d`
  if (!row) throw new Error('it was not judged')
  return row
}

const notices = (tx: Tx) =>
  tx<{ kind: string; detail: unknown }[]>`select kind, detail from app.notices`

const RIGHT: Found[] = ['verified', 'verified']

t.test('finish_check: a pending domain with all required records is verified', async (t) => {
  await rolledBack(sql, async (tx) => {
    const domain = await judged(tx, await given(tx, 'pending'), true, RIGHT)
    t.equal(domain.status, 'verified')
    t.ok(domain.verifiedAt)
    t.ok((domain.hoursToNextCheck ?? 99) <= 24, 'and looked at within the day')
    t.same(await notices(tx), [])
  })
})

t.test('finish_check: neither provider nor DNS alone verifies a domain', async (t) => {
  for (const [isActive, ...found] of [
    [false, 'verified', 'verified'],
    [true, 'verified', 'missing'],
    [true, 'mismatch', 'verified'],
    [true, 'pending', 'verified'],
  ] as [boolean, ...Found[]][]) {
    await rolledBack(sql, async (tx) => {
      const domain = await judged(tx, await given(tx, 'pending'), isActive, found)
      t.equal(domain.status, 'pending', `${isActive} ${found}`)
      t.equal(domain.hoursToNextCheck, 1 / 12, 'it is looked at again in five minutes')
    })
  }
})

t.test('finish_check: a pending domain fails after 72 hours with a notice', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'pending', { age: '71 hours 59 minutes' })
    t.equal((await judged(tx, id, true, ['verified', 'missing'])).status, 'pending')
    await tx`update app.domains set created_at = now() - interval '72 hours' where id = ${id}`
    const domain = await judged(tx, id, true, ['verified', 'missing'])
    t.match(domain, { status: 'failed', nextCheckAt: null })
    t.same(await notices(tx), [
      {
        kind: 'domain_not_found',
        detail: {
          domain: 'shop.example',
          records: ['CNAME pg2._domainkey.shop.example: missing'],
        },
      },
    ])
    t.equal((await judged(tx, id, true, ['verified', 'missing'])).status, 'failed')
    t.equal((await notices(tx)).length, 1, 'once')
  })
})

t.test('finish_check: an outage of DNS fails no domain', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'pending', { age: '80 hours' })
    t.match(await judged(tx, id, true, ['pending', 'verified']), {
      status: 'pending',
      nextCheckAt: Date,
    })
  })
})

t.test('finish_check: correct records just before 72 hours verify a domain', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'pending', { age: '80 hours' })
    t.equal((await judged(tx, id, true, RIGHT)).status, 'verified')
  })
})

t.test('finish_check: a failed domain is verified by a later check', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'failed', { age: '100 days' })
    t.equal((await judged(tx, id, true, ['missing', 'verified'])).status, 'failed')
    const domain = await judged(tx, id, true, RIGHT)
    t.equal(domain.status, 'verified')
    t.ok(domain.verifiedAt)
    t.ok(domain.nextCheckAt)
  })
})

t.test('finish_check: a verified domain stays so for 72 hours of wrong records', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'verified', { age: '100 days' })
    const first = await judged(tx, id, true, ['missing', 'verified'])
    t.match(first, { status: 'verified', wrongSince: Date, hoursToNextCheck: 24 })

    await tx`update app.domains set wrong_since = now() - interval '60 hours' where id = ${id}`
    const later = await judged(tx, id, true, ['missing', 'verified'])
    t.match(later, { status: 'verified', hoursToNextCheck: 12 }, 'it is looked at when they end')

    await tx`update app.domains set wrong_since = now() - interval '72 hours' where id = ${id}`
    const last = await judged(tx, id, true, ['missing', 'verified'])
    t.match(last, { status: 'failed', nextCheckAt: null })
    t.match(await notices(tx), [{ kind: 'domain_failed', detail: { domain: 'shop.example' } }])
  })
})

t.test('finish_check: correct records within 72 hours reset the period', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'verified', { age: '100 days', wrongFor: '71 hours' })
    t.match(await judged(tx, id, true, RIGHT), { status: 'verified', wrongSince: null })
    t.match(await judged(tx, id, false, RIGHT), { status: 'verified', wrongSince: Date })
    const [row] =
      await tx`select now() - wrong_since as wrong_for from app.domains where id = ${id}`
    t.match(row, { wrongFor: '00:00:00' })
  })
})

t.test('finish_check: a missing optional record does not matter', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'verified', { age: '100 days', wrongFor: '80 hours' })
    t.match(await judged(tx, id, true, RIGHT), { status: 'verified', wrongSince: null })
  })
})

t.test('finish_check: a manually verified domain stays verified', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await given(tx, 'verified', { isManuallyVerified: true, wrongFor: '100 hours' })
    t.match(await judged(tx, id, false, ['missing', 'missing']), { status: 'verified' })
    t.same(await notices(tx), [])
  })
})

t.test('finish_check: a deleted domain is ignored', async (t) => {
  await rolledBack(sql, async (tx) => {
    const [row] = await tx`
      select (core.evaluate_domain(gen_random_uuid(), true, ${tx.json(records(...RIGHT))})).id`
    t.same(row, { id: null })
  })
})
