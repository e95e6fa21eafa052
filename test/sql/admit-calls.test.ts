import { randomUUID } from 'node:crypto'
import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { catalogueJson } from '../../src/errors.ts'
import { parseEmail } from '../../src/schemas/email.ts'
import { parseSms } from '../../src/schemas/sms.ts'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { anEmail, anSms } from '../fixtures/http.ts'
import { anyJson } from '../fixtures/messages.ts'
import { createOrganisation, holdSecond, type TestOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()

type Key = { api_key: string; organisation_id: string; mode: string }

/** Returns the known key of an organisation, as the service remembers it. */
async function keyOf({ id, liveKey }: TestOrganisation, key = liveKey): Promise<Key> {
  const [row] = await sql<Key[]>`
    select encode(sha256(convert_to(${key}, 'UTF8')), 'hex') as "api_key",
      core.decode_id('org', ${id}) as "organisation_id", 'live' as mode`
  const { apiKey, organisationId } = row as unknown as { apiKey: string; organisationId: string }
  return { api_key: apiKey, organisation_id: organisationId, mode: 'live' }
}

const channels = {
  accept_emails: {
    scope: 'emails:send',
    item: ({ domain }: TestOrganisation) => parseEmail(anEmail(domain)),
  },
  accept_sms: { scope: 'sms:send', item: () => parseSms(anSms()) },
} as const

type Accept = keyof typeof channels

/** Admits the keys of calls, call 10 and up. */
const admit = (tx: Tx, run: string, scope: string, keys: Key[]) =>
  caller(tx as never)('admit_calls', {
    run,
    scope,
    calls: anyJson(keys.map((key, n) => ({ n: n + 10, ...key }))),
  })

/** Accepts a send for each key; returns the numbers of the calls that got a response. */
async function accept(
  tx: Tx,
  name: Accept,
  run: string,
  { organisation, keys }: { organisation: TestOrganisation; keys: Key[] },
) {
  const parsed = channels[name].item(organisation)
  if ('fields' in parsed) throw new Error(JSON.stringify(parsed.fields))
  const responses = await caller(tx as never)(name, {
    calls: anyJson(
      keys.map(({ organisation_id, mode }, n) => ({
        n: n + 10,
        organisation_id,
        mode,
        key: `request:${randomUUID()}`,
        fingerprint: 'f',
        batch: false,
      })),
    ),
    items: anyJson(keys.map((_, n) => ({ ...parsed.value, call: n + 10, index: 0 }))),
    catalogue: catalogueJson('https://postgram.test'),
    run,
  })
  return responses.map(({ n }) => n).toSorted((a, b) => a - b)
}

for (const [name, { scope }] of Object.entries(channels) as [Accept, (typeof channels)[Accept]][]) {
  t.test(`${name}: leaves out the calls that admit_calls refused`, async (t) => {
    const organisation = await createOrganisation(sql)
    const other = await createOrganisation(sql)
    const suspended = await createOrganisation(sql)
    const full = await createOrganisation(sql)
    await sql`select ops.suspend(${suspended.id}, 'did not pay')`
    await holdSecond(sql, full, 99)
    const [reader] =
      await sql`select ops.create_api_key(${organisation.id}, 'live', '{read}') as key`
    const [revoked] = await sql`select ops.create_api_key(${organisation.id}, 'live') as key`
    await sql`select ops.revoke_api_key(${revoked?.key})`
    const known = await keyOf(organisation)
    const keys = [
      known,
      await keyOf(organisation, 'sk_live_unknown'),
      await keyOf(organisation, revoked?.key),
      await keyOf(organisation, reader?.key),
      await keyOf(suspended),
      await keyOf(full),
      await keyOf(full),
      { ...known, organisation_id: (await keyOf(other)).organisation_id },
      { ...known, mode: 'test' },
      known,
    ]
    await rolledBack(sql, async (tx) => {
      const run = randomUUID()
      const admissions = await admit(tx, run, scope, keys)
      t.same(
        admissions.map(({ n, retryAfter }) => [n, retryAfter]).toSorted(),
        [
          [1, null],
          [10, null],
          [4, null],
          [5, null],
          [6, null],
          [7, 1],
          [8, null],
          [9, null],
        ],
        'returns what api.admit returns',
      )
      t.same(await accept(tx, name, run, { organisation, keys }), [10, 15, 19])
    })
  })

  t.test(`${name}: accepts nothing if the keys of its run were not admitted`, async (t) => {
    const organisation = await createOrganisation(sql)
    const keys = [await keyOf(organisation)]
    await rolledBack(sql, async (tx) => {
      const run = randomUUID()
      t.same(await accept(tx, name, run, { organisation, keys }), [], 'none was')
      await admit(tx, randomUUID(), scope, keys)
      t.same(await accept(tx, name, run, { organisation, keys }), [], 'those of another run were')
      await admit(tx, run, scope, keys)
      t.same(await accept(tx, name, run, { organisation, keys }), [10])
    })
  })
}

t.test('admit_calls: the accept that follows on the connection waits for the disk', async (t) => {
  const organisation = await createOrganisation(sql)
  const connection = await sql.reserve()
  t.teardown(() => connection.release())
  await connection`set synchronous_commit = on`
  await admit(connection as never, randomUUID(), 'emails:send', [await keyOf(organisation)])
  t.same([...(await connection`show synchronous_commit`)], [{ synchronousCommit: 'on' }])
})
