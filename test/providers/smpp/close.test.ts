import t from 'tap'
import { smsTo } from '../../fixtures/providers.ts'
import { type Reply, sendInVain, smppTo, startSmsc } from '../../fixtures/smpp.ts'
import { HELD_MS, holdLimits, until } from '../../fixtures/time.ts'

const WRONG_BIND_STATE = 0x04
const WRONG_PASSWORD = 0x0e

const PHONE = '+27820000000'

t.test('close(): an SMSC that does not respond delays it by closeTimeoutMs', async (t) => {
  const smsc = await startSmsc(t, { submit_sm: () => 'silence', unbind: () => 'silence' })
  const provider = smppTo(smsc, { times: { closeTimeoutMs: 200 } })
  const sending = provider.send(smsTo(PHONE))
  await until('the submit', async () => smsc.submits.length === 1)
  await provider.close()
  t.match(await sending, { outcome: 'ambiguous' })
  t.notOk(smsc.steps.includes('unbind'), 'no unbind to an SMSC that does not respond')
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
