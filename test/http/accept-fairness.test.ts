import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { catalogueJson } from '../../src/errors.ts'
import { parseEmail } from '../../src/schemas/email.ts'
import { parseSms } from '../../src/schemas/sms.ts'
import { createDatabase, traces, untilLocked } from '../fixtures/database.ts'
import { anEmail, anSms, get, post } from '../fixtures/http.ts'
import { anyJson } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

// The sends of one organisation do not delay those of another.

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const uuidOf = async ({ id }: TestOrganisation): Promise<string> => {
  const [row] = await sql`select core.decode_id('org', ${id}) as uuid`
  return row?.uuid
}

/** Runs `work` while another transaction holds the lock of the organisation, as a long accept does. */
async function whileLocked(organisation: TestOrganisation, work: () => Promise<void>) {
  const uuid = await uuidOf(organisation)
  await sql.begin(async (tx) => {
    await tx`select from app.allowances where organisation_id = ${uuid} for no key update`
    await work()
  })
}

const people = (count: number) => Array.from({ length: count }, (_, n) => `r${n}@c.example`)

t.test('a victim sends while every accept of an attacker waits, heavy and light', async (t) => {
  const attacker = await createOrganisation(sql)
  const victim = await createOrganisation(sql)
  // Sends of keys admitted before are admitted and accepted in one round trip.
  for (const key of [attacker.liveKey, attacker.testKey, victim.liveKey]) {
    t.equal((await get(`${base}/v1/usage`, key)).status, 200)
  }
  const many = { to: people(50), cc: people(50), bcc: people(50) }
  const attack = () => [
    post(`${base}/v1/emails/batch`, attacker.liveKey, {
      emails: Array.from({ length: 100 }, () => anEmail('unverified.example', many)),
    }),
    post(`${base}/v1/sms/batch`, attacker.liveKey, {
      messages: Array.from({ length: 60 }, () => anSms()),
    }),
    ...Array.from({ length: 20 }, (_, n) =>
      n % 2
        ? post(`${base}/v1/emails`, attacker.liveKey, anEmail(attacker.domain))
        : post(`${base}/v1/sms`, attacker.testKey, anSms()),
    ),
  ]
  const attacks: ReturnType<typeof attack> = []
  await whileLocked(attacker, async () => {
    for (let round = 0; round < 3; round++) {
      attacks.push(...attack())
      const responses = await Promise.all([
        post(`${base}/v1/emails`, victim.liveKey, anEmail(victim.domain)),
        post(`${base}/v1/sms`, victim.liveKey, anSms()),
        post(`${base}/v1/emails`, victim.testKey, anEmail(victim.domain)),
      ])
      t.strictSame(
        responses.map(({ status }) => status),
        [200, 200, 200],
      )
    }
  })
  const responses = await Promise.all(attacks)
  t.strictSame(
    [...new Set(responses.map(({ status }) => status))],
    [200],
    'the sends of the attacker are accepted after the lock is released',
  )
})

t.test('a request is admitted while a send of its organisation waits for a lock', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const read = () => get(`${base}/v1/usage`, liveKey)
  t.equal((await read()).status, 200)
  let send: ReturnType<typeof post> | undefined
  await sql.begin(async (tx) => {
    await tx`lock table app.bodies in exclusive mode`
    send = post(`${base}/v1/emails`, liveKey, anEmail(domain))
    await untilLocked(sql, 1, 'accept_emails')
    t.equal((await read()).status, 200)
  })
  t.equal((await send)?.status, 200)
})

/** Calls api.accept_emails or api.accept_sms like a shared run; returns the calls that got a row. */
async function acceptShared(
  name: 'accept_emails' | 'accept_sms',
  calls: [TestOrganisation, object][],
) {
  const described = await Promise.all(
    calls.map(async ([organisation], n) => ({
      n,
      organisation_id: await uuidOf(organisation),
      mode: 'live',
      key: `request:${name}-${n}-${Math.random()}`,
      fingerprint: 'f',
      batch: false,
    })),
  )
  const responses = await caller(sql)(name, {
    calls: anyJson(described),
    items: anyJson(calls.map(([, item], call) => ({ ...item, call, index: 0 }))),
    catalogue: catalogueJson('https://postgram.test'),
    is_shared: true,
  })
  return responses.map(({ n, code }) => [n, code]).toSorted()
}

const emailOf = ({ domain }: TestOrganisation, fields: Record<string, unknown> = {}) => {
  const parsed = parseEmail(anEmail(domain, fields))
  if ('fields' in parsed) throw new Error(JSON.stringify(parsed.fields))
  return parsed.value
}

t.test('a shared run leaves out calls of a locked organisation, in both channels', async (t) => {
  const locked = await createOrganisation(sql)
  const free = await createOrganisation(sql)
  const sms = parseSms(anSms())
  if ('fields' in sms) throw new Error('no SMS')
  await whileLocked(locked, async () => {
    const before = await traces(sql)
    t.same(
      await acceptShared('accept_emails', [
        [locked, emailOf(locked)],
        [free, emailOf(free)],
        [locked, emailOf(locked)],
        [free, emailOf(locked)],
      ]),
      [
        [1, null],
        [3, 'domain_not_verified'],
      ],
    )
    t.same(
      await acceptShared('accept_sms', [
        [locked, sms.value],
        [free, sms.value],
      ]),
      [[1, null]],
    )
    const { messages } = await traces(sql)
    t.equal(messages, before.messages + 2)
    t.same(await acceptShared('accept_emails', [[locked, emailOf(locked)]]), [])
  })
})

t.test(
  'a shared run leaves out calls that render more than 256 KB of one organisation',
  async (t) => {
    const attacker = await createOrganisation(sql)
    const victim = await createOrganisation(sql)
    const template = async ({ id }: TestOrganisation, html: string) => {
      const [row] = await sql`select ops.create_template(${id}, 'T', 'Hi', ${html}, null) as id`
      return row?.id
    }
    const large = await template(attacker, 'x'.repeat(300_000))
    const repeating = await template(attacker, '{{a}}'.repeat(20))
    const small = await template(victim, '{{a}}')
    const from = (organisation: TestOrganisation, templateId: string, a = 'x') =>
      [
        organisation,
        emailOf(organisation, {
          subject: undefined,
          text: undefined,
          templateId,
          variables: { a },
        }),
      ] as [TestOrganisation, object]
    t.same(
      await acceptShared('accept_emails', [
        from(attacker, large),
        from(attacker, repeating, 'x'.repeat(10_000)),
        from(victim, small),
        from(attacker, repeating, 'x'.repeat(10_000)),
        from(attacker, repeating),
        [victim, emailOf(victim)],
      ]),
      [
        [1, null],
        [2, null],
        [4, null],
        [5, null],
      ],
    )
    // The service then runs these calls alone.
    const fields = { subject: undefined, text: undefined, templateId: large }
    const responses = await Promise.all(
      Array.from({ length: 5 }, () =>
        post(`${base}/v1/emails`, attacker.liveKey, anEmail(attacker.domain, fields)),
      ),
    )
    t.strictSame(
      responses.map(({ status }) => status),
      Array(5).fill(200),
    )
  },
)
