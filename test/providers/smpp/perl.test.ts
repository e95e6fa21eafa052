import t from 'tap'
import { smsTo, testSmsProvider } from '../../fixtures/providers.ts'
import { listen, noNetSmpp, smppTo, startPerlSmsc, tagging, tagOf } from '../../fixtures/smpp.ts'
import { clockAhead, until } from '../../fixtures/time.ts'

const skip = noNetSmpp
const ann = '+27820000000'
/** The number whose messages the SMSC throttles. */
const bob = '+27820000002'

/** Longer than any test. The clock passes it once the network refuses a message. */
const SUBMIT_TIMEOUT_MS = 600_000

if (skip) t.pass(`skipped: ${skip}`, { skip })
else {
  const clock = clockAhead(t)
  testSmsProvider('smpp', async () => {
    const smsc = await startPerlSmsc(t)
    const provider = tagging(smppTo(smsc, { times: { submitTimeoutMs: SUBMIT_TIMEOUT_MS } }))
    return {
      provider: {
        ...provider,
        async send(sms) {
          const before = smsc.refusals.length
          const sending = provider.send(sms)
          if (sms.recipient !== bob) return sending
          await until('the refusal', async () => smsc.refusals.length > before)
          clock.pass(SUBMIT_TIMEOUT_MS)
          return sending
        },
      },
      recipients: { accepted: ann, refused: '+27820000001', refusedByAll: bob },
      async partsOf(sms) {
        return (await smsc.submits())
          .filter(({ from }) => from === tagOf(sms))
          .map(({ esmClass, message }) => (esmClass === 0x40 ? (message[5] ?? 0) : 1))
      },
    }
  })
}

t.test('smpp: Net::SMPP reads submit_sm unchanged', { skip }, async (t) => {
  const smsc = await startPerlSmsc(t)
  const provider = smppTo(smsc)
  const body = `${'a'.repeat(152)}€ and @ {more}`
  const id = '01999999-0000-7000-8000-0000000000c3'
  await provider.send(smsTo(ann, { id, body }))
  await provider.send(smsTo(ann, { body: '–ñ🎉', sender: '+27110000000' }))
  await provider.close()
  const common = { to: '27820000000', validity: '000001000000000R', receipt: '1' }
  const [first, second, third] = await smsc.submits()
  t.strictSame(smsc.binds, ['postgram hunter2 - 52'])
  t.match(first, { ...common, from: 'Postgram', types: '5 0 1 1', esmClass: 0x40, dataCoding: 0 })
  // The euro sign takes two septets and goes whole into the second part.
  t.strictSame(first?.message.toString('latin1'), `\x05\0\x03\xc3\x02\x01${'a'.repeat(152)}`)
  t.strictSame(
    second?.message.toString('latin1'),
    '\x05\0\x03\xc3\x02\x02\x1be and \0 \x1b(more\x1b)',
  )
  t.match(third, { ...common, from: '27110000000', types: '1 1 1 1', esmClass: 0, dataCoding: 8 })
  t.strictSame(third?.message.toString('hex'), '201300f1d83cdf89')
})

t.test('smpp: deliver_sm of Net::SMPP is confirmed', { skip }, async (t) => {
  const smsc = await startPerlSmsc(t)
  const { receipts, inbound, listener } = listen()
  const provider = smppTo(smsc, { listener })
  await until('a bind', async () => smsc.binds.length > 0)
  const text =
    'id:2684354561 sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:A mess'
  const from = '27820000000'
  t.equal(await smsc.deliver({ esmClass: 4, from, to: 'Postgram', message: Buffer.from(text) }), 0)
  t.match(receipts, [{ type: 'delivered', phone: ann, provider: 'smpp' }])
  t.ok(receipts[0]?.network_ids.includes('a0000001'), 'the hexadecimal spelling of the response')
  const parameters = {
    receipted_message_id: Buffer.from('A0000002\0'),
    message_state: Buffer.from([3]),
  }
  const message = Buffer.alloc(0)
  t.equal(await smsc.deliver({ from, to: 'Postgram', message, parameters }), 0)
  t.match(receipts[1], { type: 'expired', network_ids: ['a0000002'] })
  t.equal(await smsc.deliver({ from, to: '27110000000', message: Buffer.from('STOP') }), 0)
  t.match(inbound, [{ from: ann, to: '+27110000000', body: 'STOP' }])
  await provider.close()
})
