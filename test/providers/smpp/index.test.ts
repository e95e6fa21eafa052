import t from 'tap'
import { smppTo } from '../../fixtures/smpp.ts'
import { testSmsProvider } from '../../fixtures/sms-provider-suite.ts'
import { startSmsc, tagging, tagOf } from '../../fixtures/smsc.ts'

const INVALID_DESTINATION = 0x0b
const THROTTLED = 0x58

testSmsProvider('smpp', async () => {
  const smsc = await startSmsc(t, {
    submit_sm(_, { to }) {
      if (to.endsWith('1')) return { status: INVALID_DESTINATION }
      return to.endsWith('2') ? { status: THROTTLED } : 'well'
    },
  })
  return {
    provider: tagging(smppTo(smsc, { times: { writesWithinMs: 2000 } })),
    phones: {
      taken: '+27820000000',
      refusedForGood: '+27820000001',
      refusedForNow: '+27820000002',
    },
    async partsOf(sms) {
      return smsc.submits
        .filter(({ from, id }) => from === tagOf(sms) && id !== null)
        .map(({ part }) => part)
    },
  }
})
