import { createServer, type Socket } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { encode } from '../../../src/providers/smpp/pdu.ts'
import { smsTo } from '../../fixtures/providers.ts'
import {
  listen,
  type Reply,
  type Script,
  type Step,
  sendInVain,
  smppTo,
  startSmsc,
} from '../../fixtures/smpp.ts'
import { HELD_MS, holdLimits, until } from '../../fixtures/time.ts'

const ann = '+27820000000'
const bob = '+27820000009'

/** Only the first time; after that the SMSC works. */
const first = (reply: Reply) => (number: number) => (number === 1 ? reply : 'well')

const garbage = { octets: Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n') }

t.test('link: a failure before the bind delays the message but loses none', async (t) => {
  const phases: [name: string, script: Script][] = [
    ['at once', { connection: first('cut') }],
    ['at once, politely', { connection: first('end') }],
    ['at the bind', { bind_transceiver: first('cut') }],
    ['at the bind, politely', { bind_transceiver: first('end') }],
    ['refused', { bind_transceiver: first({ status: 0x0d }) }],
    ['still bound from before', { bind_transceiver: first({ status: 0x05 }) }],
    ['answered by garbage', { bind_transceiver: first(garbage) }],
    ['greeted by garbage', { connection: first(garbage) }],
    [
      'answered by the wrong PDU',
      { bind_transceiver: first({ octets: encode('unbind_resp', 1) }) },
    ],
    ['not answered', { bind_transceiver: first('silence') }],
  ]
  const limits = holdLimits(t)
  for (const [name, script] of phases) {
    const smsc = await startSmsc(t, script)
    const times = name === 'not answered' ? { responseTimeoutMs: HELD_MS } : {}
    const provider = smppTo(smsc, { times })
    const sending = provider.send(smsTo(ann))
    if (name === 'not answered') {
      await until('the bind', async () => smsc.steps.includes('bind_transceiver'))
      limits.endFirst()
    }
    t.match(await sending, { outcome: 'sent' }, name)
    t.equal(smsc.submits.length, 1)
    t.equal(smsc.steps.filter((step) => step === 'connection').length, 2)
    await provider.close()
  }
})

t.test('send(): without a link in time a message is deferred with the reason', async (t) => {
  const nobody = { url: 'smpp://postgram:hunter2@127.0.0.1:1' }
  t.strictSame(await sendInVain(t, nobody, smsTo(ann)), {
    outcome: 'deferred',
    about: 'connection',
    code: 'ECONNREFUSED',
    text: 'There is no link to the network: it refuses connections (ECONNREFUSED).',
    parts: [],
  })
  const smsc = await startSmsc(t, { bind_transceiver: () => ({ status: 0x0e }) })
  t.match(await sendInVain(t, smsc, smsTo(ann)), {
    outcome: 'deferred',
    about: 'provider',
    code: 'ESME_RINVPASWD',
    text: 'There is no link to the network: it refuses the login (ESME_RINVPASWD, 0x0000000e).',
  })
  t.strictSame(smsc.submits, [])
})

t.test('link: an SMSC that is down logs one warning a minute with the count', async (t) => {
  const warnings: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line) => warnings.push(JSON.parse(line)) })
  const smsc = await startSmsc(t, { bind_transceiver: () => ({ status: 0x0e }) })
  const provider = smppTo(smsc, { log })
  const binds = () => smsc.steps.filter((step) => step === 'bind_transceiver').length
  await until('five binds', async () => binds() >= 5)
  const first = {
    host: '127.0.0.1',
    port: smsc.port,
    code: 'ESME_RINVPASWD',
    reason: 'it refuses the login (ESME_RINVPASWD, 0x0000000e)',
    failures: 1,
    msg: 'SMSC link failed',
  }
  t.match(warnings, [first])
  t.equal(warnings.length, 1)
  // Closing logs the failures of the unfinished minute.
  await provider.close()
  t.match(warnings.slice(1), [{ ...first, failures: Number }])
  t.ok(Number(warnings[1]?.failures) >= 3)
})

t.test('send(): a link cut after submit_sm is ambiguous, and a new one opens', async (t) => {
  const submitted = encode('submit_sm_resp', 2, { message_id: 'A1' })
  for (const reply of ['cut', 'end', garbage, { octets: encode('unbind_resp', 2) }] as Reply[]) {
    const smsc = await startSmsc(t, { submit_sm: first(reply) })
    const provider = smppTo(smsc)
    const answer = await provider.send(smsTo(ann))
    t.match(answer, {
      outcome: 'ambiguous',
      about: 'provider',
      text: /before the network responded\.$/,
      parts: [],
    })
    t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
    t.strictSame(
      smsc.submits.map(({ to }) => `+${to}`),
      [ann, bob],
    )
    await provider.close()
  }
  const smsc = await startSmsc(t, {
    submit_sm(number) {
      if (number > 1) return 'well'
      smsc.write(submitted.subarray(0, 18))
      return 'end'
    },
  })
  const provider = smppTo(smsc)
  t.match(
    await provider.send(smsTo(ann)),
    { outcome: 'ambiguous' },
    'half a response does not count',
  )
  t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
  await provider.close()
})

t.test('send(): submit_sm without a response is ambiguous and closes a dead link', async (t) => {
  const smsc = await startSmsc(t, { submit_sm: first('silence') })
  const limits = holdLimits(t)
  const provider = smppTo(smsc, { times: { responseTimeoutMs: HELD_MS } })
  const sending = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length === 1)
  limits.endAll()
  t.match(await sending, {
    outcome: 'ambiguous',
    text: /did not respond in time\.$/,
  })
  t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
  t.equal(smsc.steps.filter((step) => step === 'bind_transceiver').length, 2)
  t.equal(smsc.submits.length, 2)
  await provider.close()
})

t.test('link: stays open if other PDUs arrive while one submit_sm has no response', async (t) => {
  const smsc = await startSmsc(t, {
    submit_sm: (_, { to }) => (ann.endsWith(to) ? 'silence' : 'well'),
  })
  const limits = holdLimits(t)
  const provider = smppTo(smsc, { times: { responseTimeoutMs: HELD_MS } })
  const unanswered = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length > 0)
  t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
  limits.endAll()
  t.match(await unanswered, { outcome: 'ambiguous' })
  t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
  t.equal(smsc.steps.filter((step) => step === 'bind_transceiver').length, 1)
  await provider.close()
})

t.test('link: an SMSC that stops in the middle of a PDU is disconnected', async (t) => {
  const half = encode('submit_sm_resp', 2, { message_id: 'A1' }).subarray(0, 18)
  const smsc = await startSmsc(t, {
    submit_sm: first({ octets: half }),
    enquire_link: () => (smsc.submits.length === 1 ? 'silence' : 'well'),
  })
  const limits = holdLimits(t)
  const provider = smppTo(smsc, {
    times: { responseTimeoutMs: HELD_MS, enquireLinkIntervalMs: 10 },
  })
  const sending = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length === 1)
  await until('a new bind', async () => {
    // Also for requests sent after its half of a PDU.
    limits.endAll()
    return smsc.steps.filter((step) => step === 'bind_transceiver').length >= 2
  })
  t.match(await sending, { outcome: 'ambiguous' })
  t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
  await provider.close()
})

t.test('link: messages that wait for a permit when it is cut are sent once', async (t) => {
  const { promise: isCut, resolve: cut } = Promise.withResolvers<Reply>()
  const smsc = await startSmsc(t, { submit_sm: (number) => (number === 1 ? isCut : 'well') })
  const provider = smppTo(smsc, { window: 1 })
  const sends = [ann, bob, bob].map((phone) => provider.send(smsTo(phone)))
  await until('the first submit', async () => smsc.submits.length === 1)
  cut('cut')
  const answers = await Promise.all(sends)
  t.strictSame(
    answers.map(({ outcome }) => outcome),
    ['ambiguous', 'sent', 'sent'],
  )
  t.equal(smsc.submits.length, 3)
  await provider.close()
})

t.test('session: unbind from the SMSC is confirmed after the responses in progress', async (t) => {
  const { promise, resolve: answer } = Promise.withResolvers<Reply>()
  const smsc = await startSmsc(t, { submit_sm: (number) => (number === 1 ? promise : 'well') })
  const provider = smppTo(smsc)
  const send = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length === 1)
  t.match(await smsc.ask('unbind'), { command: 'unbind_resp', command_status: 0 })
  answer({ id: 'LATE' })
  t.match(await send, { outcome: 'sent', parts: [{ part: 1, network_id: 'late' }] })
  t.match(await provider.send(smsTo(bob)), { outcome: 'sent' })
  t.equal(smsc.steps.filter((step) => step === 'bind_transceiver').length, 2)
  await provider.close()
})

t.test('session: enquire_link is sent and responded to', async (t) => {
  const smsc = await startSmsc(t, { enquire_link: (number) => (number > 2 ? 'silence' : 'well') })
  const limits = holdLimits(t)
  const provider = smppTo(smsc, {
    times: { enquireLinkIntervalMs: 10, responseTimeoutMs: HELD_MS },
  })
  const count = (step: Step) => smsc.steps.filter((one) => one === step).length
  await until('a bind', async () => smsc.steps.includes('bind_transceiver'))
  t.match(await smsc.ask('enquire_link'), { command: 'enquire_link_resp', command_status: 0 })
  await until('an enquire_link without a response', async () => count('enquire_link') > 2)
  t.equal(count('bind_transceiver'), 1)
  await until('a new bind, because the link is dead', async () => {
    limits.endAll()
    return count('bind_transceiver') > 1
  })
  await provider.close()
})

t.test('close(): waits for requests in progress, refuses new ones and unbinds', async (t) => {
  const { promise, resolve: answer } = Promise.withResolvers<Reply>()
  const smsc = await startSmsc(t, { submit_sm: () => promise })
  const provider = smppTo(smsc, { window: 1 })
  const underWay = provider.send(smsTo(ann))
  const waiting = provider.send(smsTo(bob))
  await until('the submit', async () => smsc.submits.length === 1)
  const closed = provider.close()
  t.match(await waiting, { outcome: 'deferred', parts: [] })
  t.match(await provider.send(smsTo(bob)), { outcome: 'deferred' })
  answer('well')
  t.match(await underWay, { outcome: 'sent' })
  await closed
  t.equal(smsc.submits.length, 1)
  t.equal(smsc.steps.at(-1), 'unbind')
})

t.test('close(): does not wait for a retry', async (t) => {
  const smsc = await startSmsc(t, { submit_sm: () => ({ status: 0x58 }) })
  const provider = smppTo(smsc, { times: { retryDelayMs: 1_000_000, submitTimeoutMs: 10_000_000 } })
  const send = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length > 0)
  await provider.close()
  t.match(await send, { outcome: 'deferred', parts: [] })
})

t.test('close(): ends at closeTimeoutMs if the SMSC does not respond', async (t) => {
  const smsc = await startSmsc(t, { submit_sm: () => 'silence', unbind: () => 'silence' })
  const provider = smppTo(smsc, { times: { closeTimeoutMs: 100 } })
  const send = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length === 1)
  await provider.close()
  t.match(await send, { outcome: 'ambiguous' })
  t.notOk(smsc.steps.includes('unbind'), 'no unbind to an SMSC that does not respond')

  const mute = await startSmsc(t, { bind_transceiver: () => 'silence' })
  const unbound = smppTo(mute)
  const waiting = unbound.send(smsTo(ann))
  await until('the bind', async () => mute.steps.includes('bind_transceiver'))
  await unbound.close()
  t.match(await waiting, { outcome: 'deferred' })

  const unused = smppTo({ url: 'smpp://postgram:hunter2@127.0.0.1:1' }, { listener: null })
  await unused.close()
})

t.test('link: binds at once with a listener, otherwise with the first message', async (t) => {
  const smsc = await startSmsc(t)
  const idle = smppTo(smsc, { listener: null })
  const listening = smppTo(smsc, { listener: listen().listener })
  await until('a bind', async () => smsc.steps.includes('bind_transceiver'))
  t.equal(smsc.steps.length, 2)
  t.match(await idle.send(smsTo(ann)), { outcome: 'sent' })
  t.equal(smsc.steps.length, 5)
  t.equal(await smsc.deliver({ esm_class: 4, data_coding: 0, short_message: 'id:1' }), 0x64)
  await Promise.all([idle.close(), listening.close()])
})

t.test('session: an SMSC that sends requests and does not read is disconnected', async (t) => {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.pause()
      socket.write(encode('bind_transceiver_resp', 1))
      const asked = Buffer.concat(Array(4096).fill(encode('enquire_link', 7)))
      const ask = (error?: Error | null) => {
        if (!error) socket.write(asked, ask)
      }
      ask()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  const provider = smppTo({ url: `smpp://postgram:hunter2@127.0.0.1:${port}` })
  await until('a second connection', async () => sockets.length > 1)
  await provider.close()
})
