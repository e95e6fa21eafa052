import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import { startMailgun } from '../../fixtures/mailgun.ts'
import { testProvider } from '../../fixtures/providers.ts'

const mailgun = await startMailgun()
mailgun.domains.add('sender.example').state = 'active'
mailgun.domains.takenElsewhere.add('elsewhere.example')

testProvider('mailgun', async () => ({
  provider: createMailgun(mailgun.account),
  recipients: {
    accepted: 'ann@example.com',
    refused: 'invalid@example.com',
    refusedByAll: 'limited@example.com',
  },
  attemptsOf: async (email) =>
    mailgun.messages.taken.filter(({ id }) => id === messageIdOf(email)).length,
  can: { lookUp: true, keepKeys: true, tellUnknownDomains: true },
  async publish(name) {
    Object.assign(mailgun.domains.all.get(name) ?? {}, { isPublished: true })
  },
  refusedDomain: 'elsewhere.example',
  unreachable: createMailgun({ ...mailgun.account, apiBase: 'http://nobody.invalid' }),
  disconnected: () => createMailgun({ ...mailgun.account, apiBase: 'http://nobody.invalid' }),
}))
