import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type Call, caller } from '../../src/db/call.ts'
import { createSealer, openSecret } from '../../src/webhooks/secrets.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { runTask, secrets as serviceSecrets, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { addEvents, createEndpoint, startReceiver, stateOf } from '../fixtures/webhooks.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const { url, sql } = await createDatabase()
const call = caller(sql)
const organisation = await createOrganisation(sql)

type Stored = {
  secret: string
  secretSealedBy: string | null
  oldSecret: string | null
  oldSecretSealedBy: string | null
}

async function storedOf({ id }: { id: string }): Promise<Stored> {
  const [row] = await sql<Stored[]>`
    select p.secret, p.secret_sealed_by, p.old_secret, p.old_secret_sealed_by
    from app.webhook_endpoints p where p.id = core.decode_id('we', ${id})`
  if (!row) throw new Error('there is no such endpoint')
  return row
}

const rotate = async ({ id }: { id: string }) => {
  const [row] = await sql<{ secret: string }[]>`
    select ops.rotate_webhook_secret(${id}) as secret`
  return row?.secret ?? ''
}

const before = createSecrets([keyOf(1)])
const after = createSecrets([keyOf(2)])
const both = createSecrets([keyOf(2), keyOf(1)])

t.test('secrets are random, and plain text until they are sealed', async (t) => {
  const endpoints = await Promise.all(
    Array.from({ length: 10 }, () => createEndpoint(sql, organisation)),
  )
  t.equal(new Set(endpoints.map(({ secret }) => secret)).size, 10)
  const [endpoint] = endpoints
  if (!endpoint) return
  t.match(endpoint.secret, /^whsec_[0-9a-f]{64}$/)
  t.match(await storedOf(endpoint), { secret: endpoint.secret, secretSealedBy: null })

  const task = () => runTask('seal-webhook-secrets', { sealSecrets: createSealer(call, before) })
  t.equal(await task(), 10)
  t.equal(await task(), 0, 'a second run finds none')
  for (const each of endpoints) {
    const { secret, secretSealedBy } = await storedOf(each)
    t.equal(secretSealedBy, before.keyIds[0])
    t.notMatch(secret, each.secret.slice(6))
    t.equal(openSecret(before, secret), each.secret)
    t.throws(() => openSecret(after, secret), /not sealed with SECRET_KEY/)
  }
})

t.test('both secrets of a rotated endpoint are sealed and resealed', async (t) => {
  const endpoint = await createEndpoint(sql, organisation)
  await createSealer(call, before)()
  const rotated = await rotate(endpoint)
  t.match(await storedOf(endpoint), { secret: rotated, secretSealedBy: null })
  await createSealer(call, before)()

  await createSealer(call, after)()
  t.match(
    await storedOf(endpoint),
    { secretSealedBy: before.keyIds[0] },
    'a secret sealed with an unknown key stays unchanged',
  )

  await createSealer(call, both)()
  const stored = await storedOf(endpoint)
  t.match(stored, { secretSealedBy: after.keyIds[0], oldSecretSealedBy: after.keyIds[0] })
  t.equal(openSecret(after, stored.secret), rotated)
  t.equal(openSecret(after, stored.oldSecret ?? ''), endpoint.secret)
})

t.test('a secret that is rotated while it is being sealed keeps both values', async (t) => {
  const endpoint = await createEndpoint(sql, organisation)
  let rotated = ''
  const slow = (async (name, args) => {
    if (name === 'store_sealed_secrets') rotated = await rotate(endpoint)
    return call(name, args)
  }) as Call
  await createSealer(slow, after)()
  const stored = await storedOf(endpoint)
  t.match(stored, { secret: rotated, secretSealedBy: null })
  t.match(stored, { oldSecretSealedBy: after.keyIds[0] })
  t.equal(openSecret(after, stored.oldSecret ?? ''), endpoint.secret)
})

t.test('a damaged sealed secret is not changed, and the others are sealed', async (t) => {
  const damaged = await createEndpoint(sql, organisation)
  await createSealer(call, before)()
  await sql`
    update app.webhook_endpoints set secret = 'damaged' where id = core.decode_id('we', ${damaged.id})`
  const endpoint = await createEndpoint(sql, organisation)
  await createSealer(call, both)()
  t.match(await storedOf(damaged), { secret: 'damaged', secretSealedBy: before.keyIds[0] })
  t.match(await storedOf(endpoint), { secretSealedBy: after.keyIds[0] })
})

t.test('the first delivery seals the secret', async (t) => {
  const receiver = await startReceiver()
  // A worker does not start if SECRET_KEY opens none of the sealed secrets.
  await sql`delete from app.webhook_endpoints`
  const service = await startTestService(url, { roles: ['worker'] })
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  await addEvents(sql, [endpoint], 1)
  await until('the delivery', async () => (await stateOf(sql, endpoint)).waiting === 0)
  const stored = await until('the sealed secret', async () => {
    const found = await storedOf(endpoint)
    return found.secretSealedBy !== null && found
  })
  t.equal(openSecret(serviceSecrets, stored.secret), endpoint.secret)
  await service.stop()
})

t.test('events delivered under one lease: their sealed secret is opened once', async (t) => {
  const receiver = await startReceiver()
  await sql`delete from app.webhook_endpoints`
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  await createSealer(call, serviceSecrets)()
  // As many as one call of api.start_deliveries returns, so that one lease has them all.
  await addEvents(sql, [endpoint], 32)
  const opened: string[] = []
  const open = (sealed: string) => {
    opened.push(sealed)
    return serviceSecrets.open(sealed)
  }
  await startTestService(url, { roles: ['worker'], secrets: { ...serviceSecrets, open } })
  await until('the deliveries', async () => (await stateOf(sql, endpoint)).waiting === 0)
  t.equal(receiver.received.length, 32)
  t.same(opened, [(await storedOf(endpoint)).secret])
})
