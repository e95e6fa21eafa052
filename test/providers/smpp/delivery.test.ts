import fc from 'fast-check'
import t from 'tap'
import { readDelivery } from '../../../src/providers/smpp/delivery.ts'
import type { Fields } from '../../../src/providers/smpp/pdu.ts'
import { octetsOf } from '../../../src/sms/segments.ts'

const now = new Date('2026-11-20T12:00:30.000Z')
const text = (words: string) => Buffer.from(words, 'latin1')

function receiptOf(words: string, fields: Fields = {}) {
  const delivery = readDelivery(
    {
      esm_class: 4,
      source_addr_ton: 1,
      source_addr: '27820000000',
      short_message: text(words),
      ...fields,
    },
    now,
  )
  if (delivery && !('receipt' in delivery)) throw new Error('it was taken for a message')
  return delivery?.receipt ?? null
}

function inboundOf(fields: Fields, countryCode: string | null = null) {
  const delivery = readDelivery(
    { source_addr: '27820000000', destination_addr: '27110000000', ...fields },
    now,
    countryCode,
  )
  return delivery && 'inbound' in delivery ? delivery.inbound : delivery
}

const whole = (stat: string, rest = 'err:000 text:A mess') =>
  `id:0123ABCD sub:001 dlvrd:001 submit date:2611201159 done date:2611201200 stat:${stat} ${rest}`

t.test('readDelivery(): reads a receipt in the text form', async (t) => {
  t.strictSame(receiptOf(whole('DELIVRD')), {
    provider: 'smpp',
    network_ids: ['0123abcd', '123abcd', '19114957', '0019114957'],
    phone: '+27820000000',
    type: 'delivered',
    occurred_at: '2026-11-20T12:00:30.000Z',
    text: 'DELIVRD',
  })
})

t.test('readDelivery(): each state has its receipt type, or is ignored', async (t) => {
  const types = {
    DELIVRD: 'delivered',
    delivrd: 'delivered',
    DELIVERED: 'delivered',
    EXPIRED: 'expired',
    UNDELIV: 'failed',
    UNDELIVERABLE: 'failed',
    REJECTD: 'failed',
    REJECTED: 'failed',
    DELETED: 'failed',
    ENROUTE: 'deferred',
    ACCEPTD: null,
    UNKNOWN: null,
    '': null,
    ['x'.repeat(5000)]: null,
  }
  for (const [word, type] of Object.entries(types)) {
    t.equal(receiptOf(whole(word))?.type ?? null, type, word)
  }
  const numbers = [
    null,
    'deferred',
    'delivered',
    'expired',
    'failed',
    'failed',
    null,
    null,
    'failed',
  ]
  for (const [number, type] of numbers.entries()) {
    const fields = { receipted_message_id: 'A1', message_state: number, esm_class: 0 }
    t.equal(receiptOf('', fields)?.type ?? null, type, `${number}`)
  }
})

t.test('readDelivery(): optional parameters take precedence over the text', async (t) => {
  const fields = { receipted_message_id: 'FF', message_state: 3 }
  t.match(receiptOf(whole('DELIVRD'), fields), { network_ids: ['ff'], type: 'expired' })
})

t.test('readDelivery(): a receipt has the error code of the network, if any', async (t) => {
  t.equal(receiptOf(whole('UNDELIV', 'err:0b1 text:x'))?.code, '0b1')
  t.equal(receiptOf(whole('UNDELIV', 'err:0b1 text:x'))?.text, 'UNDELIV (err 0b1)')
  t.equal(receiptOf(whole('UNDELIV'))?.text, 'UNDELIV')
  t.equal(receiptOf(whole('UNDELIV', `err:${'9'.repeat(50)}`))?.code, '9'.repeat(20))
  t.notOk('code' in (receiptOf(whole('DELIVRD', 'err:000')) ?? {}))
  const network_error_code = Buffer.from([3, 0, 0x1b])
  t.equal(receiptOf('id:1 stat:UNDELIV', { network_error_code })?.code, '001b')
  t.notOk('code' in (receiptOf('id:1 stat:UNDELIV', { network_error_code: Buffer.alloc(0) }) ?? {}))
})

t.test('readDelivery(): an implausible date is replaced by the current time', async (t) => {
  const dates = {
    '2611201158': '2026-11-20T11:58:59.000Z',
    '261120115801': '2026-11-20T11:58:01.000Z',
    '2611201200': now.toISOString(),
    // South African time, which would be in the future as UTC.
    '2611201400': now.toISOString(),
    '2611171200': now.toISOString(),
    '2613451299': now.toISOString(),
    '11201200': now.toISOString(),
    yesterday: now.toISOString(),
  }
  for (const [date, occurred_at] of Object.entries(dates)) {
    t.equal(receiptOf(`id:1 done date:${date} stat:DELIVRD`)?.occurred_at, occurred_at, date)
  }
})

t.test('readDelivery(): a receipt has the phone, if the network names it', async (t) => {
  const phones: [string, number, string | undefined][] = [
    ['27820000000', 1, '+27820000000'],
    ['+27820000000', 1, '+27820000000'],
    ['27820000000', 0, '+27820000000'],
    ['0820000000', 2, undefined],
    ['0027820000000', 0, '+27820000000'],
    ['820000000', 2, undefined],
    ['27820000000', 5, undefined],
    ['Postgram', 5, undefined],
    ['', 1, undefined],
    ['2782000000012345', 1, undefined],
  ]
  for (const [source_addr, source_addr_ton, phone] of phones) {
    const receipt = receiptOf(whole('DELIVRD'), { source_addr, source_addr_ton })
    t.equal(receipt?.phone, phone, source_addr)
  }
})

t.test('readDelivery(): a receipt without id or known state is null', async (t) => {
  for (const words of ['', 'id: stat:DELIVRD', 'stat:DELIVRD', 'id:123', 'Hello', '\0\xff\x1b']) {
    t.equal(receiptOf(words), null, words)
  }
  t.equal(readDelivery({ esm_class: 4 }, now), null)
})

t.test('readDelivery(): a text that looks like a receipt is an inbound SMS', async (t) => {
  t.match(inboundOf({ short_message: text(whole('DELIVRD')) }), { body: /^id:0123ABCD sub/ })
  const quoted = 'id:1 stat:UNDELIV err:001 text:stat:DELIVRD id:2'
  t.match(
    receiptOf(quoted),
    { network_ids: ['1'], type: 'failed' },
    'the quoted text is not read as a receipt',
  )
})

t.test('readDelivery(): an inbound SMS is decoded by data_coding', async (t) => {
  const gsm = octetsOf('STOP @ {€} à', 'gsm7')
  const cases: [string, Fields][] = [
    ['STOP', { short_message: text('STOP'), data_coding: 0 }],
    ['STOP', { short_message: text('STOP') }],
    ['STOP @ {€} à', { short_message: gsm, data_coding: 0 }],
    ['STOP @ {€} à', { short_message: gsm, data_coding: 0xf1 }],
    ['Stop @ é', { short_message: text('Stop @ é'), data_coding: 3 }],
    ['Stop @ é', { short_message: text('Stop @ é'), data_coding: 1 }],
    ['STÖP 🎉', { short_message: octetsOf('STÖP 🎉', 'ucs2'), data_coding: 8 }],
    ['ST', { short_message: Buffer.from('0053005400', 'hex'), data_coding: 8 }],
    ['STOP', { short_message: text('STOP'), data_coding: 4 }],
    ['STOP', { message_payload: text('STOP'), short_message: Buffer.alloc(0) }],
    [
      'part',
      {
        short_message: Buffer.concat([Buffer.from([5, 0, 3, 1, 2, 1]), text('part')]),
        esm_class: 0x40,
      },
    ],
    ['', { short_message: Buffer.from([200, 1, 2]), esm_class: 0x40 }],
    ['', {}],
    ['a\uFFFDb', { short_message: Buffer.from('006100000062', 'hex'), data_coding: 8 }],
    ['x'.repeat(2000), { message_payload: text('x'.repeat(5000)) }],
  ]
  for (const [body, fields] of cases) {
    t.strictSame(inboundOf(fields), {
      provider: 'smpp',
      from: '+27820000000',
      to: '+27110000000',
      body,
      received_at: now.toISOString(),
    })
  }
})

t.test('readDelivery(): an inbound SMS has the sender ID that it was sent to', async (t) => {
  const senders: [string, number, string][] = [
    ['27110000000', 1, '+27110000000'],
    ['+27110000000', 0, '+27110000000'],
    ['31234', 3, '31234'],
    ['Postgram', 5, 'Postgram'],
  ]
  for (const [destination_addr, dest_addr_ton, to] of senders) {
    t.match(inboundOf({ destination_addr, dest_addr_ton }), { to })
  }
})

t.test('readDelivery(): an inbound SMS that cannot be recorded has a reason', async (t) => {
  const cases: [Fields, string | null, RegExp][] = [
    [{ source_addr: 'Bank', source_addr_ton: 5 }, '27', /^the sender is not a phone number$/],
    [{ source_addr: '' }, '27', /^the sender is not a phone number$/],
    [{ source_addr: '0820000000' }, null, /no country code: set SMPP_COUNTRY_CODE$/],
    [{ source_addr: '820000000', source_addr_ton: 2 }, null, /no country code: set/],
    [{ source_addr: '12345', source_addr_ton: 2 }, '27', /^the sender is not a phone number$/],
    [{ destination_addr: '' }, null, /^the network names no destination$/],
  ]
  for (const [fields, countryCode, reason] of cases) {
    const { source_addr: from = '27820000000' } = fields
    const body = text('STOP')
    t.match(inboundOf({ ...fields, short_message: body }, countryCode), {
      ignored: { provider: 'smpp', from, body: 'STOP', reason },
    })
  }
  t.match(readDelivery({}, now), { ignored: { from: '', to: '', body: '' } })
})

t.test('readDelivery(): a number in national form gets the configured country code', async (t) => {
  const numbers: [address: string, ton: number, countryCode: string, phone: string][] = [
    ['0821234567', 0, '27', '+27821234567'],
    ['0821234567', 2, '27', '+27821234567'],
    ['821234567', 2, '27', '+27821234567'],
    ['27821234567', 0, '27', '+27821234567'],
    ['27821234567', 1, '27', '+27821234567'],
    ['0027821234567', 2, '27', '+27821234567'],
    ['+27821234567', 2, '27', '+27821234567'],
    ['00447700900000', 0, '27', '+447700900000'],
    ['5551234567', 2, '1', '+15551234567'],
    ['15551234567', 2, '1', '+15551234567'],
    ['06201234567', 2, '36', '+36201234567'],
    ['0701020304', 0, '225', '+2250701020304'],
  ]
  for (const [source_addr, source_addr_ton, countryCode, from] of numbers) {
    t.match(inboundOf({ source_addr, source_addr_ton }, countryCode), { from }, source_addr)
  }
  const to = (destination_addr: string, dest_addr_ton: number) =>
    inboundOf({ destination_addr, dest_addr_ton }, '27')
  t.match(to('0110000000', 0), { to: '+27110000000' })
  t.match(to('31234', 2), { to: '31234' }, 'a short code is not changed')
  const receipt = { source_addr: '0820000000', source_addr_ton: 2 }
  t.notOk(
    'phone' in (receiptOf(whole('DELIVRD'), receipt) ?? {}),
    'a receipt without a phone has none',
  )
})

t.test('readDelivery(): random fields never throw', (t) => {
  const octets = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
  const number = fc.integer({ min: 0, max: 255 })
  fc.assert(
    fc.property(
      fc.record(
        {
          source_addr: fc.string(),
          source_addr_ton: number,
          destination_addr: fc.string(),
          dest_addr_ton: number,
          esm_class: number,
          data_coding: number,
          short_message: fc.oneof(
            octets,
            fc.string().map((words) => text(`id:${words} stat:DELIVRD`)),
          ),
          message_payload: octets,
          receipted_message_id: fc.string(),
          message_state: number,
          network_error_code: octets,
        },
        { requiredKeys: [] },
      ),
      (fields) => readDelivery(fields as Fields, now) !== undefined,
    ),
    { numRuns: 3000 },
  )
  t.end()
})
