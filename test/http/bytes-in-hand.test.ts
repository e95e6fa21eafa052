import { createHook } from 'node:async_hooks'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { openBrowser, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, get, isRefused, openRaw, post, postHead } from '../fixtures/http.ts'
import { createOrganisation, liftRate, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const KB = 1024
const MB = 1024 * KB

const { url, sql } = await createDatabase()
const { base, metricsAddress } = await startTestService(url, {
  roles: ['api'],
  metricsPort: 0,
  httpLimits: { bytesInProgress: 4 * MB, bodyMs: 600_000 },
})

const ofOrganisation =
  'More than 1 MB of your requests are in progress, decompressed. Wait for their responses before sending more.'
const ofAll =
  'The requests in progress of all organisations come close to 4 MB, decompressed. Try again in a second.'

async function anOrganisation() {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  return organisation
}

const sendOf = ({ liveKey, domain }: TestOrganisation, bytes: number) =>
  post(`${base}/v1/emails`, liveKey, JSON.stringify(anEmail(domain)).padEnd(bytes))

const bomb = gzipSync(' '.repeat(31.5 * MB))

const sendBomb = async ({ liveKey }: TestOrganisation) => {
  const client = await openRaw(base)
  const headers = 'Content-Encoding: gzip\r\nConnection: close\r\n'
  client.write(postHead('/v1/emails/batch', liveKey, bomb.length, headers))
  client.write(bomb)
  return client.answer()
}

async function bytesInProgress(): Promise<number> {
  const { text } = await get(`${metricsAddress}/metrics`, null)
  return Number(/^postgram_http_request_bytes (\d+)$/m.exec(text)?.[1])
}

/** Starts a send and leaves it incomplete; waits until the service has received that part. */
async function holdBytes({ liveKey }: TestOrganisation, bytes: number) {
  const before = await bytesInProgress()
  const client = await openRaw(base)
  client.write(postHead('/v1/emails', liveKey, 4 * MB) + ' '.repeat(bytes))
  const isThere = async () => (await bytesInProgress()) === before + bytes
  await until('the bytes to be counted', isThere)
  return client.socket
}

t.test(
  'a gzip bomb is stopped at the quota of its organisation: 429 with Retry-After',
  async (t) => {
    const organisation = await anOrganisation()
    const before = await traces(sql)
    const responses = await Promise.all(Array.from({ length: 20 }, () => sendBomb(organisation)))
    for (const response of responses) {
      isRefused(t, response, 'rate_limited', undefined, { words: ofOrganisation })
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')
    t.equal((await sendOf(organisation, 400 * KB)).status, 200, 'its reservation is released')
  },
)

t.test('compressed bodies of one organisation are decompressed one after the other', async (t) => {
  const organisation = await anOrganisation()
  const decoders = new Set<number>()
  /** The order in which bodies returned from zlib, consecutive chunks of one body counted once. */
  const order: number[] = []
  const hook = createHook({
    init(id, type) {
      if (type === 'ZLIB') decoders.add(id)
    },
    before(id) {
      if (decoders.has(id) && order.at(-1) !== id) order.push(id)
    },
  }).enable()
  await Promise.all(Array.from({ length: 10 }, () => sendBomb(organisation)))
  hook.disable()
  t.equal(decoders.size, 10)
  t.equal(order.length, 10)
})

t.test('bombs of ten organisations leave room for the message of another', async (t) => {
  const organisations = await Promise.all(Array.from({ length: 10 }, anOrganisation))
  const other = await anOrganisation()
  const attack = organisations.flatMap((each) => [sendBomb(each), sendBomb(each)])
  for (let n = 0; n < 20; n++) t.equal((await sendOf(other, 32 * KB)).status, 200)
  for (const response of await Promise.all(attack)) {
    t.strictSame([response.status, response.json.error.code], [429, 'rate_limited'])
  }
})

t.test('half-sent requests count, and the refusal says whose quota is used up', async (t) => {
  const [one, two, three] = await Promise.all([
    anOrganisation(),
    anOrganisation(),
    anOrganisation(),
  ])
  const first = await holdBytes(one, 900 * KB)
  isRefused(t, await sendOf(one, 300 * KB), 'rate_limited', undefined, { words: ofOrganisation })
  const second = await holdBytes(two, 700 * KB)
  isRefused(t, await sendOf(three, 700 * KB), 'rate_limited', undefined, { words: ofAll })
  t.equal((await sendOf(three, 500 * KB)).status, 200, 'a quarter of the free bytes is available')
  first.destroy()
  second.destroy()
  await until('their reservations to be released', async () => (await bytesInProgress()) === 0)
  t.equal((await sendOf(one, 1000 * KB)).status, 200)
})

t.test('small requests count 16 KB each: 64 fit into a quota of 1 MB', async (t) => {
  const organisation = await anOrganisation()
  const clients = await Promise.all(Array.from({ length: 64 }, () => openRaw(base)))
  for (const client of clients) client.write(postHead('/v1/emails', organisation.liveKey, 100))
  await until('all to be counted', async () => (await bytesInProgress()) === MB)
  for (const response of [
    await sendOf(organisation, 100),
    await get(`${base}/v1/usage`, organisation.liveKey),
  ]) {
    isRefused(t, response, 'rate_limited', undefined, { words: ofOrganisation })
  }
  for (const { socket } of clients) socket.destroy()
  await until('all reservations to be released', async () => (await bytesInProgress()) === 0)
})

t.test('the form of a user counts for the user, not for strangers or the API', async (t) => {
  const organisation = await anOrganisation()
  const user = await signInAs(sql, base, { organisation: organisation.id, role: 'member' })
  const path = `/dashboard/${organisation.id}/suppressions/import`
  const form = { listReason: 'manual', list: 'x'.repeat(300 * KB) }
  const before = await bytesInProgress()
  const client = await openRaw(base)
  client.write(postHead(path, '', 2 * MB, `Cookie: ${user.cookies()}\r\n`) + 'x'.repeat(900 * KB))
  const isThere = async () => (await bytesInProgress()) === before + 900 * KB
  await until('the bytes to be counted', isThere)
  t.equal((await user.post(path, form)).status, 429, 'the user has used up the quota')
  t.equal((await openBrowser(base).post(path, form)).status, 401, 'strangers have theirs')
  t.equal((await sendOf(organisation, 300 * KB)).status, 200, 'the API has its own')
  client.socket.destroy()
  await until('the reservation to be released', async () => (await bytesInProgress()) === 0)
})
