import t from 'tap'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation, suppress } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const [organisation, other] = [await createOrganisation(sql), await createOrganisation(sql)]
const { domain } = organisation

const reasons = ['hard_bounce', 'complaint', 'unsubscribe', 'manual'] as const
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

t.test('sending_domains: allow a verified domain and its subdomains', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.same(await domainsFor(tx, domain), [domain])
    t.same(await domainsFor(tx, `mail.${domain}`), [domain])
    t.same(await domainsFor(tx, `a.b.c.${domain}`), [domain])
    await tx`select ops.verify_domain(${organisation.id}, ${`b.${domain}`})`
    t.same(await domainsFor(tx, `a.b.${domain}`), [`b.${domain}`], 'the nearest')
  })
})

t.test('sending_domains: refuse a name that only ends like a verified domain', async (t) => {
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

t.test('sending_domains: refuse unverified and foreign domains', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.same(await domainsFor(tx, other.domain), [])
    for (const status of ['pending', 'failed']) {
      await tx`update app.domains set status = ${status} where name = ${domain}`
      t.same(await domainsFor(tx, domain), [], status)
    }
  })
})
