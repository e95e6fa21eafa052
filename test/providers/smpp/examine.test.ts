import { once } from 'node:events'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { selfSigned } from '../../fixtures/certificate.ts'
import { sendInVain, smppTo } from '../../fixtures/smpp.ts'
import { smsTo } from '../../fixtures/sms-provider-suite.ts'
import { type Reply, startSmsc } from '../../fixtures/smsc.ts'

const certificate = selfSigned()
const skip = certificate ? false : 'openssl is not installed'

/** What is said of an SMSC at this URL, and that it does not quote the password. */
async function cureFor(t: Test, url: string, times = {}): Promise<string | null> {
  const provider = smppTo({ url }, { listener: null, times })
  const cure = await provider.check()
  await provider.close()
  t.notMatch(`${cure}`, /hunter2|\n/)
  return cure
}

t.test('all is well where it lets us in, and it is said goodbye to', async (t) => {
  const smsc = await startSmsc(t)
  t.equal(await cureFor(t, smsc.url), null)
  t.strictSame(smsc.steps, ['connection', 'bind_transceiver', 'unbind'])
})

t.test('a bind that is not answered well says what to do', async (t) => {
  const cases: [Reply, RegExp | null][] = [
    [{ status: 0x0e }, /refuses our login \(ESME_RINVPASWD, 0x0000000e\): check user, password/],
    [{ status: 0x0f }, /refuses our login \(ESME_RINVSYSID, 0x0000000f\)/],
    [{ status: 0x08 }, /does not let us in \(ESME_RSYSERR, 0x00000008\): ask the network/],
    // The service itself is bound.
    [{ status: 0x05 }, null],
    ['cut', /cannot be reached \(ECONNRESET\)/],
    ['end', /closes the connection: .*smpps:\/\//],
    ['silence', /does not answer/],
    [{ octets: Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n') }, /does not speak SMPP/],
  ]
  for (const [reply, cure] of cases) {
    const smsc = await startSmsc(t, { bind_transceiver: () => reply })
    // Only one is to be given up.
    const times = reply === 'silence' ? { responseTimeoutMs: 100 } : {}
    const said = await cureFor(t, smsc.url, times)
    if (cure) t.match(said, cure)
    else t.equal(said, null)
  }
})

t.test('an SMSC that is not there is told from one that does not answer', async (t) => {
  const { url } = { url: 'smpp://postgram:hunter2@127.0.0.1:1' }
  t.match(await cureFor(t, url), /nobody listens .* \(ECONNREFUSED\)/)
  const nowhere = 'smpp://postgram:hunter2@nowhere.invalid'
  t.match(await cureFor(t, nowhere), /has no address \((ENOTFOUND|EAI_AGAIN)\)/)
})

t.test('over TLS it is trusted by its certificate', { skip }, async (t) => {
  const smsc = await startSmsc(t, {}, certificate)
  t.match(
    await cureFor(t, smsc.url),
    /certificate is not to be trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
  )
  const lax = { url: `${smsc.url}?tls.rejectUnauthorized=false` }
  t.equal(await cureFor(t, lax.url), null)
  const provider = smppTo(lax)
  t.match(await provider.send(smsTo('+27820000000')), { outcome: 'sent' })
  await provider.close()
  t.match(await sendInVain(t, smsc, smsTo('+27820000000')), {
    outcome: 'deferred',
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
})

t.test('TLS at the wrong port says so, either way', { skip }, async (t) => {
  const plain = await startSmsc(t)
  const secure = await startSmsc(t, {}, certificate)
  const times = { connectTimeoutMs: 100 }
  t.ok(await cureFor(t, plain.url.replace('smpp:', 'smpps:'), times))
  t.match(
    await cureFor(t, secure.url.replace('smpps:', 'smpp:')),
    /write smpps:\/\/ if it wants TLS/,
  )
})

t.test('what takes a connection and says nothing is given up', async (t) => {
  const server = createServer(() => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const address = `postgram:hunter2@127.0.0.1:${port}`
  const times = { connectTimeoutMs: 100 }
  t.match(await cureFor(t, `smpps://${address}`, times), /does not answer/)
  t.match(await cureFor(t, `smpp://${address}`, { responseTimeoutMs: 100 }), /does not answer/)
})
