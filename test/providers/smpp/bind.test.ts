import { once } from 'node:events'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { selfSigned } from '../../fixtures/network.ts'
import { smsTo } from '../../fixtures/providers.ts'
import { type Reply, sendInVain, smppTo, startSmsc } from '../../fixtures/smpp.ts'
import { HELD_MS, holdLimits, until } from '../../fixtures/time.ts'

const WRONG_BIND_STATE = 0x04
const WRONG_PASSWORD = 0x0e

const PHONE = '+27820000000'

const certificate = selfSigned()
const skip = certificate ? false : 'openssl is not installed'

/** Returns the hint for an SMSC at this URL, and tests that it does not quote the password. */
async function hintFor(t: Test, url: string, times = {}): Promise<string | null> {
  const provider = smppTo({ url }, { listener: null, times })
  const hint = await provider.check()
  await provider.close()
  t.notMatch(`${hint}`, /hunter2|\n/)
  return hint
}

t.test('check(): a successful bind returns null and unbinds', async (t) => {
  const smsc = await startSmsc(t)
  t.equal(await hintFor(t, smsc.url), null)
  t.strictSame(smsc.steps, ['connection', 'bind_transceiver', 'unbind'])
})

t.test('check(): a failed bind returns a hint with its fix', async (t) => {
  const cases: [Reply, RegExp | null][] = [
    [{ status: 0x0e }, /refuses the login \(ESME_RINVPASWD, 0x0000000e\): check user, password/],
    [{ status: 0x0f }, /refuses the login \(ESME_RINVSYSID, 0x0000000f\)/],
    [{ status: 0x08 }, /refuses the bind \(ESME_RSYSERR, 0x00000008\): ask the network/],
    // The service itself is bound.
    [{ status: 0x05 }, null],
    ['cut', /cannot be reached \(ECONNRESET\)/],
    ['end', /closes the connection: .*smpps:\/\//],
    ['silence', /does not respond/],
    [{ octets: Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n') }, /does not speak SMPP/],
  ]
  for (const [reply, hint] of cases) {
    const smsc = await startSmsc(t, { bind_transceiver: () => reply })
    // Only this reply needs a short time limit.
    const times = reply === 'silence' ? { responseTimeoutMs: 100 } : {}
    const actual = await hintFor(t, smsc.url, times)
    if (hint) t.match(actual, hint)
    else t.equal(actual, null)
  }
})

t.test('check(): a refused connection and an unknown host have different hints', async (t) => {
  const { url } = { url: 'smpp://postgram:hunter2@127.0.0.1:1' }
  t.match(await hintFor(t, url), /no server listens .* \(ECONNREFUSED\)/)
  const nowhere = 'smpp://postgram:hunter2@nowhere.invalid'
  t.match(await hintFor(t, nowhere), /has no address \((ENOTFOUND|EAI_AGAIN)\)/)
})

t.test('check(): refuses an untrusted certificate by default', { skip }, async (t) => {
  const smsc = await startSmsc(t, {}, certificate)
  t.match(
    await hintFor(t, smsc.url),
    /certificate of the SMSC is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
  )
  const lax = { url: `${smsc.url}?tls.rejectUnauthorized=false` }
  t.equal(await hintFor(t, lax.url), null)
  const provider = smppTo(lax)
  t.match(await provider.send(smsTo(PHONE)), { outcome: 'sent' })
  await provider.close()
  t.match(await sendInVain(t, smsc, smsTo(PHONE)), {
    outcome: 'deferred',
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
})

t.test('check(): TLS to a plain port, or the reverse, returns a hint', { skip }, async (t) => {
  const plain = await startSmsc(t)
  const secure = await startSmsc(t, {}, certificate)
  const times = { connectTimeoutMs: 100 }
  t.ok(await hintFor(t, plain.url.replace('smpp:', 'smpps:'), times))
  t.match(
    await hintFor(t, secure.url.replace('smpps:', 'smpp:')),
    /use smpps:\/\/ if the port requires TLS/,
  )
})

t.test('check(): a server that accepts and does not respond fails at the time limit', async (t) => {
  const server = createServer(() => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const address = `postgram:hunter2@127.0.0.1:${port}`
  const times = { connectTimeoutMs: 100 }
  t.match(await hintFor(t, `smpps://${address}`, times), /does not respond/)
  t.match(await hintFor(t, `smpp://${address}`, { responseTimeoutMs: 100 }), /does not respond/)
})

t.test('submit_sm: a lost bind reopens the link and loses or doubles no message', async (t) => {
  const answers: ((reply: Reply) => void)[] = []
  const smsc = await startSmsc(t, {
    submit_sm: (number) => (number > 3 ? 'well' : new Promise((resolve) => answers.push(resolve))),
    unbind: () => 'silence',
  })
  const limits = holdLimits(t)
  const provider = smppTo(smsc, { times: { closeTimeoutMs: HELD_MS } })
  const sendings = Array.from({ length: 3 }, () => provider.send(smsTo(PHONE)))
  await until('three submits', async () => answers.length === 3)
  answers[0]?.({ status: WRONG_BIND_STATE })
  await until('the first again, over a new link', async () => smsc.submits.length === 4)
  answers[1]?.({ status: WRONG_BIND_STATE })
  await until('the second again', async () => smsc.submits.length === 5)
  answers[2]?.('well')
  for (const sending of sendings) t.match(await sending, { outcome: 'sent' })
  t.equal(smsc.submits.length, 5, 'none was submitted twice')
  const closed = provider.close()
  limits.endAll()
  await closed
})

t.test('bind: a wrong password is retried only after wrongLoginDelayMs', async (t) => {
  const smsc = await startSmsc(t, { bind_transceiver: () => ({ status: WRONG_PASSWORD }) })
  const answer = await sendInVain(t, smsc, smsTo(PHONE), { wrongLoginDelayMs: 600_000 })
  t.match(answer, { outcome: 'deferred', code: 'ESME_RINVPASWD' })
  t.equal(smsc.steps.filter((step) => step === 'bind_transceiver').length, 1)
})
