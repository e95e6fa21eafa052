import smpp from 'smpp'
import t from 'tap'
import { smsTo } from '../../fixtures/providers.ts'
import { type Reply, smppTo, startSmsc } from '../../fixtures/smpp.ts'
import { clockAhead, HELD_MS, holdLimits, until } from '../../fixtures/time.ts'

const ann = '+27820000000'
const LONG = 'A text of several parts. '.repeat(16)
const THROTTLED = 0x58

/** Longer than any test. */
const WRITES_WITHIN_MS = 600_000

/** The temporary command statuses: the same PDU may be accepted later. */
const TEMPORARY = [
  ...['ESME_RINVBNDSTS', 'ESME_RSYSERR', 'ESME_RMSGQFUL', 'ESME_RTHROTTLED', 'ESME_RX_T_APPN'],
]

t.test('submit_sm: fields follow from the message', async (t) => {
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc)
  const senders = ['Post Gram', '+27110000000', '31234']
  for (const sender of senders) await provider.send(smsTo(ann, { sender, body: '@ £ {€} ~' }))
  await provider.send(smsTo(ann, { body: 'ўкраїна 🎉' }))
  t.match(smsc.submits[0]?.fields, {
    service_type: '',
    dest_addr_ton: 1,
    dest_addr_npi: 1,
    destination_addr: '27820000000',
    esm_class: 0,
    registered_delivery: 1,
    data_coding: 0,
  })
  t.strictSame(
    smsc.submits.map(({ fields }) => [
      fields.source_addr_ton,
      fields.source_addr_npi,
      fields.source_addr,
    ]),
    [
      [5, 0, 'Post Gram'],
      [1, 1, '27110000000'],
      [3, 0, '31234'],
      [5, 0, 'Postgram'],
    ],
  )
  t.equal(smsc.submits[0]?.text, '@ £ {€} ~')
  t.match(smsc.submits[3], { text: 'ўкраїна 🎉', fields: { data_coding: 8 } })
  t.match(smsc.pdus[0], {
    command: 'bind_transceiver',
    system_id: 'postgram',
    password: 'hunter2',
    interface_version: 0x34,
  })
  await provider.close()
})

t.test('submit_sm: parts have the same reference in every attempt', async (t) => {
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc)
  const id = '01999999-0000-7000-8000-0000000000c3'
  await provider.send(smsTo(ann, { id, body: LONG }))
  await provider.send(smsTo(ann, { id, body: LONG, attempt: 2, takenParts: ['1', '2'] }))
  t.match(
    smsc.submits.map(({ reference, total, part }) => [reference, total, part]),
    [
      [0xc3, 3, 1],
      [0xc3, 3, 2],
      [0xc3, 3, 3],
      [0xc3, 3, 3],
    ],
  )
  t.equal(
    smsc.submits
      .slice(0, 3)
      .map(({ text }) => text)
      .join(''),
    LONG,
  )
  const all = smsTo(ann, { body: LONG, takenParts: ['1', '2', '3'] })
  t.strictSame(await provider.send(all), { outcome: 'sent', parts: [] })
  t.equal(smsc.submits.length, 4)
  await provider.close()
})

t.test('send(): a part has the id of the network in lower case', async (t) => {
  const ids = ['0A1B', 'x'.repeat(64), '']
  const smsc = await startSmsc(t, { submit_sm: (number) => ({ id: ids[number - 1] ?? '' }) })
  const provider = smppTo(smsc)
  const networkIds: (string | undefined)[] = []
  for (const _ of ids) {
    const { outcome, parts } = await provider.send(smsTo(ann))
    t.equal(outcome, 'sent')
    networkIds.push(parts?.[0]?.network_id)
  }
  t.match(networkIds, ['0a1b', 'x'.repeat(64), /^none:[0-9a-f-]{36}:1$/])
  await provider.close()
})

t.test('send(): the worst outcome of the parts is that of the message', async (t) => {
  const cases: [second: Reply, outcome: string][] = [
    [{ status: 0x0b }, 'failed'],
    ['silence', 'ambiguous'],
    [{ status: THROTTLED }, 'deferred'],
  ]
  const limits = holdLimits(t)
  const clock = clockAhead(t)
  for (const [second, outcome] of cases) {
    const smsc = await startSmsc(t, {
      submit_sm(number, { part }) {
        // It was submitted again, after the others.
        if (number > 3) clock.pass(WRITES_WITHIN_MS)
        return part === 2 ? second : { id: `${part}` }
      },
    })
    const times = { responseTimeoutMs: HELD_MS, submitTimeoutMs: WRITES_WITHIN_MS }
    const provider = smppTo(smsc, { times })
    const sending = provider.send(smsTo(ann, { body: LONG }))
    if (second === 'silence') {
      const isAsked = () => smsc.submits.length === 3 && limits.count() === 1
      await until('all responses but one', async () => isAsked())
      limits.endFirst()
    }
    const { parts, ...answer } = await sending
    t.match(answer, { outcome, text: String })
    t.strictSame(parts, [
      { part: 1, network_id: '1' },
      { part: 3, network_id: '3' },
    ])
    await provider.close()
  }
})

t.test('send(): the other parts are not submitted if the first is not accepted', async (t) => {
  const smsc = await startSmsc(t, { submit_sm: () => ({ status: 0x0b }) })
  const provider = smppTo(smsc)
  const answer = await provider.send(smsTo(ann, { body: LONG }))
  t.match(answer, { outcome: 'failed', parts: [] })
  t.equal(smsc.submits.length, 1)
  await provider.close()
})

t.test('send(): a permanent command status fails the message', async (t) => {
  let status = 0
  const smsc = await startSmsc(t, { submit_sm: () => ({ status }) })
  const provider = smppTo(smsc)
  const permanent = Object.entries(smpp.errors).filter(
    ([name]) => !['ESME_ROK', ...TEMPORARY].includes(name),
  )
  t.ok(permanent.length > 50)
  for (const [name, number] of permanent) {
    status = number
    t.match(await provider.send(smsTo(ann)), { outcome: 'failed', code: name })
  }
  status = 0x0b
  t.strictSame(await provider.send(smsTo(ann)), {
    outcome: 'failed',
    about: 'message',
    code: 'ESME_RINVDSTADR',
    text: 'The network refuses it (ESME_RINVDSTADR, 0x0000000b).',
    parts: [],
  })
  status = 0x0410
  t.match(await provider.send(smsTo(ann)), {
    outcome: 'failed',
    code: '0x00000410',
    text: 'The network refuses it (0x00000410).',
  })
  t.equal(smsc.steps.filter((step) => step === 'connection').length, 1)
  await provider.close()
})

t.test('send(): a temporary command status is retried', async (t) => {
  for (const name of TEMPORARY) {
    const status = smpp.errors[name] ?? 0
    const smsc = await startSmsc(t, {
      submit_sm: (number) => (number <= 3 ? { status } : 'well'),
    })
    const provider = smppTo(smsc)
    t.match(await provider.send(smsTo(ann)), { outcome: 'sent' }, name)
    t.equal(smsc.submits.length, 4)
    const rebinds = name === 'ESME_RINVBNDSTS' ? 3 : 0
    t.equal(smsc.steps.filter((step) => step === 'bind_transceiver').length, 1 + rebinds)
    await provider.close()
  }
})

t.test('send(): temporary refusals until the deadline defer the message', async (t) => {
  const clock = clockAhead(t)
  const smsc = await startSmsc(t, {
    submit_sm(number) {
      if (number === 3) clock.pass(WRITES_WITHIN_MS)
      return { status: THROTTLED }
    },
  })
  const provider = smppTo(smsc, { times: { submitTimeoutMs: WRITES_WITHIN_MS } })
  t.strictSame(await provider.send(smsTo(ann)), {
    outcome: 'deferred',
    about: 'provider',
    code: 'ESME_RTHROTTLED',
    text: 'The network refuses it temporarily (ESME_RTHROTTLED, 0x00000058).',
    parts: [],
  })
  t.equal(smsc.submits.length, 3)
  await provider.close()
})

t.test('send(): a message without a permit in time is deferred and not submitted', async (t) => {
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc, { rate: 0.2, times: { submitTimeoutMs: 2500 } })
  await until('a bind', async () => smsc.steps.includes('bind_transceiver'))
  const answers = await Promise.all([1, 2, 3].map(() => provider.send(smsTo(ann))))
  t.strictSame(
    answers.map(({ outcome, about, text }) => [outcome, about, text]),
    [
      ['sent', undefined, undefined],
      ['deferred', undefined, 'The rate limit of the network left no time for it.'],
      ['deferred', undefined, 'The rate limit of the network left no time for it.'],
    ],
  )
  t.equal(smsc.submits.length, 1)
  await provider.close()
})

t.test('send(): the parts of a message in progress go before other messages', async (t) => {
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc, { window: 1 })
  await Promise.all([
    provider.send(smsTo(phone(1), { body: LONG })),
    provider.send(smsTo(phone(2))),
    provider.send(smsTo(phone(3))),
  ])
  t.strictSame(
    smsc.submits.map(({ to, part }) => [`+${to}`, part]),
    [
      [phone(1), 1],
      // Its permit came with the response to the first, before more parts were known.
      [phone(2), 1],
      [phone(1), 2],
      [phone(1), 3],
      [phone(3), 1],
    ],
  )
  await provider.close()
})

t.test('send(): 10 000 messages pass a window of 50, each once', async (t) => {
  const COUNT = 10_000
  const WINDOW = 50
  // It responds once the window is full, to the last PDU first.
  let unanswered: (() => void)[] = []
  const smsc = await startSmsc(t, {
    submit_sm: () =>
      new Promise<Reply>((resolve) => {
        unanswered.push(() => resolve('well'))
        if (unanswered.length !== WINDOW) return
        setImmediate(() => {
          const all = unanswered.reverse()
          unanswered = []
          for (const answer of all) answer()
        })
      }),
  })
  const provider = smppTo(smsc, { window: WINDOW, times: { submitTimeoutMs: WRITES_WITHIN_MS } })
  const messages = Array.from({ length: COUNT }, (_, index) => smsTo(phone(index)))
  const answers = await Promise.all(messages.map((sms) => provider.send(sms)))
  t.ok(answers.every(({ outcome }) => outcome === 'sent'))
  const ids = answers.map(({ parts }) => parts?.[0]?.network_id)
  t.equal(new Set(ids).size, COUNT, 'each has its own id')
  t.equal(smsc.submits.length, COUNT)
  t.equal(new Set(smsc.submits.map(({ to }) => to)).size, COUNT)
  t.equal(smsc.mostUnanswered, WINDOW)
  const byPhone = new Map(smsc.submits.map(({ to, id }) => [`+${to}`, id?.toLowerCase()]))
  t.ok(messages.every(({ recipient }, index) => byPhone.get(recipient) === ids[index]))
  await provider.close()
})

t.test('send(): ESME_RTHROTTLED lowers the speed and fails no message', async (t) => {
  const COUNT = 300
  // Submits accepted recently; the SMSC accepts at most 5 at a time.
  let lately = 0
  const smsc = await startSmsc(t, {
    submit_sm() {
      if (lately >= 5) return { status: THROTTLED }
      lately++
      setTimeout(() => lately--, 10)
      return 'well'
    },
  })
  const provider = smppTo(smsc, { times: { submitTimeoutMs: WRITES_WITHIN_MS } })
  const messages = Array.from({ length: COUNT }, (_, index) => smsTo(phone(index)))
  const answers = await Promise.all(messages.map((sms) => provider.send(sms)))
  t.ok(answers.every(({ outcome }) => outcome === 'sent'))
  const taken = smsc.submits.filter(({ id }) => id !== null)
  t.equal(taken.length, COUNT)
  t.equal(new Set(taken.map(({ to }) => to)).size, COUNT)
  const throttled = smsc.submits.length - COUNT
  t.ok(throttled > 0 && throttled < COUNT, 'the SMSC throttles at first, and not for long')
  await provider.close()
})

t.test('send(): generic_nack counts as a response', async (t) => {
  const smsc = await startSmsc(t, { submit_sm: () => 'silence' })
  const provider = smppTo(smsc)
  const send = provider.send(smsTo(ann))
  await until('the submit', async () => smsc.submits.length > 0)
  const sequence = Buffer.alloc(4)
  sequence.writeUInt32BE(smsc.submits[0]?.fields.sequence_number as number)
  smsc.write(Buffer.concat([Buffer.from('000000108000000000000002', 'hex'), sequence]))
  t.match(await send, { outcome: 'failed', code: 'ESME_RINVCMDLEN' })
  await provider.close()
})

function phone(index: number): string {
  return `+2782${`${index}`.padStart(7, '0')}`
}
