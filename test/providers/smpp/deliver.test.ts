import { pino } from 'pino'
import t from 'tap'
import { encode } from '../../../src/providers/smpp/pdu.ts'
import type { SmsListener } from '../../../src/providers/sms.ts'
import { smsTo } from '../../fixtures/providers.ts'
import { listen, smppTo, startSmsc } from '../../fixtures/smpp.ts'
import { until } from '../../fixtures/time.ts'

const ann = '+27820000000'
const TRY_AGAIN = 0x64

const receiptFor = (id: string) => ({
  esm_class: 4,
  data_coding: 0,
  source_addr_ton: 1,
  source_addr: '27820000000',
  destination_addr: 'Postgram',
  short_message: `id:${id} sub:001 dlvrd:001 stat:DELIVRD err:000 text:`,
})

const stop = {
  esm_class: 0,
  data_coding: 0,
  source_addr: '27820000000',
  destination_addr: '27110000000',
  short_message: 'STOP',
}

/** The header of a PDU. */
function header(length: number, command: number, status: number, sequence: number): Buffer {
  const octets = Buffer.alloc(16)
  for (const [place, number] of [length, command, status, sequence].entries()) {
    octets.writeUInt32BE(number, place * 4)
  }
  return octets
}

const isBound = (smsc: { steps: string[] }) =>
  until('a bind', async () => smsc.steps.includes('bind_transceiver'))

t.test('deliver_sm: a receipt may come before its submit_sm_resp', async (t) => {
  const heard = listen()
  const smsc = await startSmsc(t, {
    async submit_sm() {
      t.equal(await smsc.deliver(receiptFor('00A1')), 0)
      return { id: '00A1' }
    },
  })
  const provider = smppTo(smsc, { listener: heard.listener })
  t.match(await provider.send(smsTo(ann)), { outcome: 'sent', parts: [{ network_id: '00a1' }] })
  t.match(heard.receipts, [{ type: 'delivered', phone: ann, network_ids: ['00a1'] }])
  await provider.close()
})

t.test('deliver_sm: receipts and inbound SMS reach the listener', async (t) => {
  const { receipts, inbound, listener } = listen()
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc, { listener })
  await isBound(smsc)
  const parameters = { receipted_message_id: 'FF01', message_state: 5, short_message: '' }
  t.equal(await smsc.deliver({ ...receiptFor(''), ...parameters, esm_class: 0 }), 0)
  t.match(receipts, [{ type: 'failed', network_ids: ['ff01'] }])
  t.equal(await smsc.deliver(stop), 0)
  t.equal(await smsc.deliver({ ...stop, short_message: '', message_payload: 'Stop @' }), 0)
  t.equal(await smsc.deliver({ ...stop, data_coding: 8, short_message: 'СТОП' }), 0)
  t.match(
    inbound.map(({ from, to, body }) => [from, to, body]),
    ['STOP', 'Stop @', 'СТОП'].map((body) => [ann, '+27110000000', body]),
  )
  t.equal(await smsc.deliver(receiptFor('')), 0, 'an ignored receipt is confirmed')
  t.equal(receipts.length, 1)
  await provider.close()
})

t.test('deliver_sm: confirmed once recorded, and requested again after a failure', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let asked = 0
  const smsc = await startSmsc(t)
  const listener: SmsListener = {
    async onReceipt() {
      const number = ++asked
      if (number === 1) await promise
      if (number === 2) throw new Error('the database is gone')
    },
    onInbound: async () => Promise.reject(new Error('the database is gone')),
    onIgnored: () => undefined,
  }
  const provider = smppTo(smsc, { listener })
  await isBound(smsc)
  const first = smsc.deliver(receiptFor('1'))
  await until('the first receipt', async () => asked === 1)
  t.equal(await smsc.deliver(receiptFor('2')), TRY_AGAIN, 'other receipts do not wait for it')
  t.notOk(smsc.pdus.some((pdu) => pdu.command === 'deliver_sm_resp' && pdu.command_status === 0))
  resolve()
  t.equal(await first, 0)
  t.equal(await smsc.deliver(receiptFor('2')), 0)
  t.equal(await smsc.deliver(stop), TRY_AGAIN)
  await provider.close()
})

t.test('deliver_sm: a link that is cut while a receipt is recorded is bound again', async (t) => {
  const { receipts, listener } = listen()
  const { promise, resolve } = Promise.withResolvers<void>()
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc, {
    listener: {
      ...listener,
      async onReceipt(receipt) {
        await listener.onReceipt(receipt)
        if (receipts.length === 1) await promise
      },
    },
  })
  await isBound(smsc)
  const first = smsc.deliver(receiptFor('1'))
  await until('the receipt', async () => receipts.length === 1)
  smsc.cut()
  await t.rejects(first)
  resolve()
  await until('a new bind', async () => {
    return smsc.steps.filter((step) => step === 'bind_transceiver').length === 2
  })
  t.equal(await smsc.deliver(receiptFor('1')), 0)
  t.equal(receipts.length, 2)
  await provider.close()
})

t.test('close(): waits for a receipt that is being recorded', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let isAsked = false
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc, {
    listener: {
      ...listen().listener,
      async onReceipt() {
        isAsked = true
        await promise
      },
    },
  })
  await isBound(smsc)
  const status = smsc.deliver(receiptFor('1'))
  await until('the receipt', async () => isAsked)
  const closed = provider.close()
  resolve()
  t.equal(await status, 0)
  await closed
})

t.test('deliver_sm: beyond 1000 in progress the SMSC is asked to send again', async (t) => {
  const smsc = await startSmsc(t)
  const { promise, resolve } = Promise.withResolvers<void>()
  const provider = smppTo(smsc, {
    listener: { ...listen().listener, onReceipt: () => promise, onInbound: () => promise },
  })
  await isBound(smsc)
  const statuses = Array.from({ length: 1005 }, () => smsc.deliver(stop))
  const refused = await Promise.all(statuses.slice(1000))
  t.strictSame(refused, Array(5).fill(TRY_AGAIN))
  resolve()
  t.ok((await Promise.all(statuses.slice(0, 1000))).every((status) => status === 0))
  await provider.close()
})

t.test('session: unknown PDUs get generic_nack and the link stays', async (t) => {
  const smsc = await startSmsc(t)
  const provider = smppTo(smsc)
  await isBound(smsc)
  const nacks = () =>
    smsc.pdus
      .filter(({ command }) => command === 'generic_nack')
      .map(({ command_status, sequence_number }) => [command_status, sequence_number])
  smsc.write(header(16, 0x99, 0, 71))
  smsc.write(Buffer.concat([header(20, 0x15, 0, 72), Buffer.from('04270001', 'hex')]))
  smsc.write(encode('data_sm', 73))
  smsc.write(encode('alert_notification', 74))
  smsc.write(encode('outbind', 75))
  smsc.write(header(16, 0x80000004, 0, 4711))
  smsc.write(header(16, 0x80000000, 3, 4711))
  await until('three nacks', async () => nacks().length === 3)
  t.match(await smsc.ask('enquire_link'), { command_status: 0 })
  t.strictSame(nacks(), [
    [3, 71],
    [2, 72],
    [3, 73],
  ])
  t.match(await provider.send(smsTo(ann)), { outcome: 'sent' })
  t.equal(smsc.steps.filter((step) => step === 'connection').length, 1)
  await provider.close()
})

t.test('session: an invalid length or nack closes the link and opens a new one', async (t) => {
  const heads = [
    header(0, 4, 0, 1),
    header(15, 4, 0, 1),
    header(16_385, 5, 0, 1),
    header(0xffffffff, 5, 0, 1),
    header(16, 0x80000000, 2, 0),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.alloc(100_000, 0xa5),
  ]
  for (const octets of heads) {
    const smsc = await startSmsc(t)
    const provider = smppTo(smsc)
    await isBound(smsc)
    smsc.write(octets)
    await until('a new bind', async () => {
      return smsc.steps.filter((step) => step === 'bind_transceiver').length === 2
    })
    t.match(await provider.send(smsTo(ann)), { outcome: 'sent' })
    await provider.close()
  }
})

t.test('smpp: the log contains no password, text or number', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line) => lines.push(line) })
  const smsc = await startSmsc(t, {
    bind_transceiver: (number) => (number === 1 ? { status: 0x0e } : 'well'),
    submit_sm: (number) => (number === 1 ? { status: 0x0b } : 'cut'),
  })
  const provider = smppTo(smsc, {
    log,
    listener: {
      onReceipt: () => Promise.reject(new Error('the database is gone')),
      onInbound: () => Promise.reject(new Error('the database is gone')),
      onIgnored: () => undefined,
    },
  })
  const body = 'Your secret word is Rumpelstiltskin.'
  const first = await provider.send(smsTo(ann, { body }))
  await smsc.deliver({ ...stop, short_message: body })
  await smsc.deliver({
    ...receiptFor('77001'),
    short_message: `id:77001 stat:DELIVRD text:${body}`,
  })
  await smsc.deliver({ ...receiptFor('77001'), short_message: body })
  const second = await provider.send(smsTo(ann, { body }))
  await provider.close()
  const told = lines.join('') + JSON.stringify([first, second])
  t.match(told, /SMSC link failed.*bound to the SMSC.*asked it to send again.*SMSC link failed/s)
  t.notMatch(told, /hunter2|Rumpelstiltskin|82000000/)
})
