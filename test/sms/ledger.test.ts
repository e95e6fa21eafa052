import t from 'tap'
import { createDatabase, rolledBack } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import {
  createPayer,
  grant,
  ledgerOf,
  moneyOf,
  reject,
  smsOf,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'], hasSandboxSms: true })

const to = '+27821234567'

/** Accepts an SMS; returns its ID. */
async function send({ liveKey }: TestOrganisation, segments: number, overrides = {}) {
  const { json, text } = await post(
    `${base}/v1/sms`,
    liveKey,
    smsOf(segments, { to, ...overrides }),
  )
  if (!json.id) throw new Error(text)
  return json.id as string
}

t.test('refund: returns credits and included segments once', async (t) => {
  const organisation = await createPayer(sql, { included: 3, credits: 4 })
  const first = await send(organisation, 2)
  const second = await send(organisation, 3)
  t.equal(await reject(sql, [second]), 1)
  t.same(await moneyOf(sql, organisation), { smsUsed: 2, smsCredits: 4, accepted: 2 })
  t.equal(await reject(sql, [first, second]), 1, 'what has ended ends once')
  for (let again = 0; again < 2; again++) {
    await sql`select core.refund_sms(array[core.decode_id('sm', ${first}), core.decode_id('sm', ${second})])`
  }
  t.same(await moneyOf(sql, organisation), { smsUsed: 0, smsCredits: 4, accepted: 2 })
  t.same(await ledgerOf(sql, organisation), [
    { kind: 'grant', credits: 4, included: 0, balance: 4 },
    { kind: 'sms', credits: 0, included: -2, balance: 4 },
    { kind: 'sms', credits: -2, included: -1, balance: 2 },
    { kind: 'refund', credits: 2, included: 1, balance: 4 },
    { kind: 'refund', credits: 0, included: 2, balance: 4 },
  ])
  t.same(await unbalancedLedgers(sql), [])
})

t.test('refund: several messages at a time, each to its organisation', async (t) => {
  const payers = await Promise.all([5, 6].map((credits) => createPayer(sql, { credits })))
  const ids = []
  for (const organisation of [...payers, ...payers, ...payers])
    ids.push(await send(organisation, 1))
  await reject(sql, ids.slice(0, 5))
  for (const [place, organisation] of payers.entries()) {
    t.match(await moneyOf(sql, organisation), { smsCredits: 5 })
    const balances = (await ledgerOf(sql, organisation)).slice(4).map(({ balance }) => balance)
    t.same(balances, place === 0 ? [3, 4, 5] : [4, 5])
  }
  t.same(await unbalancedLedgers(sql), [])
})

t.test('refund: unpaid messages are skipped', async (t) => {
  const organisation = await createPayer(sql, { credits: 1 })
  const { liveKey, testKey, domain } = organisation
  const sandboxMessage = await send(organisation, 1, { to: '+447700900001' })
  const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  const { json: test } = await post(`${base}/v1/sms`, testKey, smsOf(1, { to }))
  t.equal(await reject(sql, [sandboxMessage]), 1)
  await sql`select core.refund_sms(array[core.decode_id('em', ${json.id}), core.decode_id('sm', ${test.id})])`
  await sql`select core.refund_sms(null)`
  await sql`select core.refund_sms('{}')`
  t.match(await moneyOf(sql, organisation), { smsUsed: 0, smsCredits: 1 })
  t.equal((await ledgerOf(sql, organisation)).length, 1)
})

t.test('refund: included segments of an ended period are lost, credits are returned', async (t) => {
  const organisation = await createPayer(sql, { included: 2, credits: 5 })
  const ids = [await send(organisation, 1), await send(organisation, 3)]
  await sql.begin(async (tx) => {
    await tx`select set_config('postgram.shift', '31 days', true)`
    await reject(tx, ids)
  })
  t.match(await moneyOf(sql, organisation), { smsUsed: 0, smsCredits: 5 })
  t.same((await ledgerOf(sql, organisation)).slice(-2), [
    { kind: 'refund', credits: 0, included: 0, balance: 3 },
    { kind: 'refund', credits: 2, included: 0, balance: 5 },
  ])
  t.same(await unbalancedLedgers(sql), [], 'also in the period that the refund began')
})

t.test('ops.grant_credits: an operator grants credits and takes back unspent ones', async (t) => {
  const organisation = await createPayer(sql, {})
  t.equal(await grant(sql, organisation, 10), 10)
  await send(organisation, 4)
  t.equal(await grant(sql, organisation, -6), 0)
  await t.rejects(grant(sql, organisation, -1), {
    message: 'the organisation has only 0 credits left',
  })
  const [row] = await sql`
    select sms_used, sms_included, sms_credits from ops.organisations where id = ${organisation.id}`
  t.same(row, { smsUsed: 0, smsIncluded: 0, smsCredits: 0 })
  t.match(
    [...(await sql`select * from ops.credit_ledger where organisation = ${organisation.id}`)],
    [
      { kind: 'grant', credits: -6, balance: 0, message: null, note: 'a test', createdAt: Date },
      { kind: 'sms', credits: -4, balance: 6, message: /^sm_/, note: '' },
      { kind: 'grant', credits: 10, balance: 10 },
    ],
  )
})

t.test('ops.ledger_check: an unbalanced ledger is found', async (t) => {
  const organisation = await createPayer(sql, { included: 3, credits: 4 })
  const id = await send(organisation, 5)
  await reject(sql, [id])
  const owner = sql`core.decode_id('org', ${organisation.id})`
  const frauds = [
    sql`update app.allowances set sms_credits = 5 where organisation_id = ${owner}`,
    sql`update app.allowances set sms_used = 1 where organisation_id = ${owner}`,
    sql`update app.credit_ledger set balance = balance + 1 where organisation_id = ${owner} and kind = 'sms'`,
    sql`update app.credit_ledger set credits = credits + 1 where organisation_id = ${owner} and kind = 'refund'`,
    sql`update app.credit_ledger set included = 1 where organisation_id = ${owner} and kind = 'refund'`,
    sql`delete from app.credit_ledger where organisation_id = ${owner} and kind = 'sms'`,
    sql`delete from app.credit_ledger where organisation_id = ${owner}`,
  ]
  t.same(await unbalancedLedgers(sql), [])
  for (const [place, fraud] of frauds.entries()) {
    await rolledBack(sql, async (tx) => {
      await tx`${fraud}`
      t.match(
        await unbalancedLedgers(tx),
        [{ organisation: organisation.id, isBalanced: false }],
        `${place}`,
      )
      const [check] = await tx`select ok from ops.checks where name = 'credit ledger'`
      // The check reads the newest balances only.
      t.equal(check?.ok, ![0, 6].includes(place))
    })
  }
})
