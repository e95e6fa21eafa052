import t from 'tap'
import { testSmsProvider } from '../../fixtures/providers.ts'
import { smppTo, startSmsc, tagging, tagOf } from '../../fixtures/smpp.ts'
import { clockAhead } from '../../fixtures/time.ts'

const INVALID_DESTINATION = 0x0b
const THROTTLED = 0x58
const TEMPORARY_ERROR = 0x64

/** Longer than any test. The clock passes it once the network refuses a message. */
const SUBMIT_TIMEOUT_MS = 600_000

const clock = clockAhead(t)

testSmsProvider('smpp', async () => {
  const smsc = await startSmsc(t, {
    submit_sm(_, { to }) {
      if (to.endsWith('1')) return { status: INVALID_DESTINATION }
      if (!/[23]$/.test(to)) return 'well'
      clock.pass(SUBMIT_TIMEOUT_MS)
      return { status: to.endsWith('2') ? THROTTLED : TEMPORARY_ERROR }
    },
  })
  return {
    provider: tagging(smppTo(smsc, { times: { submitTimeoutMs: SUBMIT_TIMEOUT_MS } })),
    recipients: {
      accepted: '+27820000000',
      refused: '+27820000001',
      refusedByAll: '+27820000002',
      refusedTemporarily: '+27820000003',
    },
    disconnected: () =>
      smppTo({ url: 'smpp://postgram:hunter2@127.0.0.1:1' }, { times: { linkTimeoutMs: 50 } }),
    async partsOf(sms) {
      return smsc.submits
        .filter(({ from, id }) => from === tagOf(sms) && id !== null)
        .map(({ part }) => part)
    },
  }
})
