import t from 'tap'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const { id: organisation } = await createOrganisation(sql)
const { id: other } = await createOrganisation(sql)

const domainOf = async (tx: Tx, name: string) => {
  const [row] = await tx`select * from ops.domains where name = ${name}`
  return { ...row }
}

const verify = async (tx: Tx, name: string, owner = organisation) => {
  const [row] = await tx<{ id: string }[]>`select ops.verify_domain(${owner}, ${name}) as id`
  return row?.id
}

t.test('ops.verify_domain: adds the domain in lower case and verifies it', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select set_config('postgram.now', '2031-05-01T10:00:00Z', true)`
    const id = await verify(tx, 'Mail.ACME.Example')
    t.match(id, /^dom_[0-9a-hjkmnp-tv-z]{26}$/)
    const at = new Date('2031-05-01T10:00:00Z')
    t.same(await domainOf(tx, 'mail.acme.example'), {
      id,
      organisation,
      name: 'mail.acme.example',
      status: 'verified',
      notFound: [],
      isManuallyVerified: true,
      provider: null,
      verifiedAt: at,
      wrongSince: null,
      lastCheckedAt: at,
      nextCheckAt: at,
      createdAt: at,
    })
  })
})

t.test('ops.verify_domain: a second call changes nothing', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select set_config('postgram.now', '2031-05-01T10:00:00Z', true)`
    const id = await verify(tx, 'acme.example')
    const before = await domainOf(tx, 'acme.example')
    await tx`select set_config('postgram.now', '2031-06-01T10:00:00Z', true)`
    t.equal(await verify(tx, 'ACME.example'), id)
    t.same(await domainOf(tx, 'acme.example'), before)
  })
})

t.test('ops.verify_domain: verifies a pending or failed domain', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await verify(tx, 'acme.example')
    for (const status of ['pending', 'failed']) {
      await tx`update app.domains set status = ${status}, verified_at = null`
      t.equal(await verify(tx, 'acme.example'), id)
      t.match(await domainOf(tx, 'acme.example'), { status: 'verified', verifiedAt: Date })
    }
  })
})

t.test('ops.verify_domain: turns a reservation into a domain', async (t) => {
  await rolledBack(sql, async (tx) => {
    const [work] = await tx<{ id: string }[]>`
      select id from api.begin_domain(core.decode_id('org', ${organisation}), 'live', 'x', 'added.example', 'mail')`
    await verify(tx, 'added.example')
    await tx`select api.abandon_domain(${work?.id ?? ''}, core.decode_id('org', ${organisation}), 'live')`
    t.match(await domainOf(tx, 'added.example'), { status: 'verified', nextCheckAt: Date })
  })
})

t.test(
  "ops.verify_domain: refuses another organisation's domain, but not its subdomain",
  async (t) => {
    await rolledBack(sql, async (tx) => {
      await verify(tx, 'acme.example', other)
      await t.rejects(
        tx.savepoint((inner) => verify(inner as Tx, 'acme.example')),
        { message: 'another organisation has the domain acme.example' },
      )
      t.match(await domainOf(tx, 'acme.example'), { organisation: other })
      t.ok(await verify(tx, 'mail.acme.example'))
    })
  },
)

t.test('ops.verify_domain: accepts digits, hyphens, xn-- and the maximum length', async (t) => {
  await rolledBack(sql, async (tx) => {
    const label = 'a'.repeat(63)
    const longest = `${label}.${label}.${label}.${'a'.repeat(61)}`
    t.equal(longest.length, 253)
    for (const name of ['a.b', '1.2.3', 'a-b--c.example', 'xn--mnchen-3ya.example', longest]) {
      t.ok(await verify(tx, name), name)
    }
  })
})

const createTemplate = async (
  tx: Tx,
  html: string | null,
  text: string | null,
  subject = 'Hello {{name}}',
) => {
  const [row] = await tx<{ id: string }[]>`
    select ops.create_template(${organisation}, 'Welcome', ${subject}, ${html}, ${text}) as id`
  return row?.id
}

t.test('ops.create_template: accepts html, text or both and lists the placeholders', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await createTemplate(tx, '<p>{{ name }} {{order.no}}</p>', '{{unsubscribe_url}}')
    t.match(id, /^tpl_[0-9a-hjkmnp-tv-z]{26}$/)
    const [row] = await tx`select * from ops.templates where id = ${String(id)}`
    t.match(row, {
      organisation,
      name: 'Welcome',
      subject: 'Hello {{name}}',
      placeholders: ['name', 'name', 'order.no', 'unsubscribe_url'],
      createdAt: Date,
    })
    for (const [html, text] of [
      [null, 'x'],
      ['x', null],
      ['', 'x'],
      ['x', ''],
    ] as const) {
      const made = await createTemplate(tx, html, text)
      const [bodies] = await tx`
        select html, text from app.templates where id = core.decode_id('tpl', ${String(made)})`
      t.same(bodies, { html: html || null, text: text || null })
    }
  })
})

t.test('ops.create_template: accepts the maximum size and 200 placeholders', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.ok(await createTemplate(tx, 'x'.repeat(2_097_152), 'x'.repeat(1_048_576), 'x'.repeat(998)))
    t.ok(await createTemplate(tx, '{{a}}'.repeat(100), '{{a}}'.repeat(99), 'Hello {{a}}'))
  })
})

t.test('ops.suppress_globally: suppresses an address once, in lower case', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.suppress_globally('Gone@Acme.Example', 'left')`
    await tx`select ops.suppress_globally('gone@acme.example', 'another note')`
    await tx`select ops.suppress_globally('away@acme.example')`
    await tx`select ops.suppress_globally('nowhere@acme.example', null)`
    const rows = await tx`select email, note from app.hard_bounces order by email`
    t.same(
      [...rows],
      [
        { email: 'away@acme.example', note: '' },
        { email: 'gone@acme.example', note: 'left' },
        { email: 'nowhere@acme.example', note: '' },
      ],
    )
  })
})

t.test('ops.unsuppress_globally: removes all hard bounces and keeps other reasons', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.suppress_globally('gone@acme.example')`
    await tx`select ops.suppress_globally('other@acme.example')`
    for (const [owner, email, reason] of [
      [organisation, 'gone@acme.example', 'hard_bounce'],
      [other, 'gone@acme.example', 'complaint'],
      [organisation, 'other@acme.example', 'hard_bounce'],
    ] as const) {
      await tx`
        insert into app.suppressions (id, organisation_id, email, reason)
        values (gen_random_uuid(), core.decode_id('org', ${owner}), ${email}, ${reason})`
    }
    await tx`select ops.unsuppress_globally('GONE@acme.example')`
    t.same(
      [...(await tx`select email, reason from app.suppressions order by email`)],
      [
        { email: 'gone@acme.example', reason: 'complaint' },
        { email: 'other@acme.example', reason: 'hard_bounce' },
      ],
    )
    t.same([...(await tx`select email from app.hard_bounces`)], [{ email: 'other@acme.example' }])
    await t.rejects(
      tx.savepoint((inner) => inner`select ops.unsuppress_globally('gone@acme.example')`),
      { message: "'gone@acme.example' is not suppressed globally" },
    )
  })
})
