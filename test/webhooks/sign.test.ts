import { spawnSync } from 'node:child_process'
import Stripe from 'stripe'
import t from 'tap'
import { sign } from '../../src/webhooks/attempt.ts'
import { createPoster } from '../../src/webhooks/post.ts'
import { startReceiver } from '../fixtures/webhooks.ts'

const { webhooks } = new Stripe('sk_test_x')
const secret = `whsec_${'a1'.repeat(32)}`
const oldSecret = `whsec_${'b2'.repeat(32)}`
const body = JSON.stringify({ id: 'evt_1', data: { text: 'Grüße, 世界 🎈 \u2028 "x" \\ é' } })
const now = () => Math.floor(Date.now() / 1000)

const openssl = spawnSync(
  'openssl',
  ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `key:${secret}`, '-r'],
  { input: `1722503730.${body}` },
)
const noOpenssl = openssl.error !== undefined && 'there is no openssl on this machine'

t.test('sign(): returns the HMAC-SHA256 of time, dot and body', { skip: noOpenssl }, async (t) => {
  const [hex] = openssl.stdout.toString().split(' ')
  t.equal(sign(body, [secret], 1722503730), `t=1722503730,v1=${hex}`)
})

t.test('after a rotation both secrets sign, the new one first', async (t) => {
  const header = sign(body, [secret, oldSecret], 5)
  const [, ours] = sign(body, [secret], 5).split(',')
  const [, theirs] = sign(body, [oldSecret], 5).split(',')
  t.equal(header, `t=5,${ours},${theirs}`)
  t.not(ours, theirs)
})

t.test('Service-Signature verifies with the library of another service', async (t) => {
  const receiver = await startReceiver()
  const poster = createPoster({ allowsPrivate: true, dnsServers: [] })
  t.teardown(() => poster.close())
  for (const secrets of [[secret], [secret, oldSecret], [oldSecret, secret]]) {
    const headers = { 'Service-Signature': sign(body, secrets, now()) }
    await poster.post({ url: receiver.url, headers, body })
    const got = receiver.received.at(-1)
    const header = String(got?.headers['service-signature'])
    const raw = got?.body ?? Buffer.alloc(0)
    for (const each of secrets) {
      t.same(webhooks.constructEvent(raw, header, each), JSON.parse(body))
    }
    const changed = Buffer.from(raw.toString().replace('evt_1', 'evt_2'))
    t.throws(() => webhooks.constructEvent(changed, header, secret), /No signatures found/)
    t.throws(() => webhooks.constructEvent(raw, header, 'whsec_other'), /No signatures found/)
  }
})

t.test('the library of another service refuses a signature older than five minutes', async (t) => {
  const header = sign(body, [secret], now() - 301)
  t.throws(() => webhooks.constructEvent(body, header, secret), /outside the tolerance zone/)
})
