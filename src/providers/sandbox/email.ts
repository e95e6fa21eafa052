import { hash } from 'node:crypto'
import { createBatcher } from '../../db/batcher/index.ts'
import type { Call } from '../../db/call.ts'
import type { DkimKey, EmailProvider, OutgoingEmail, Receipt } from '../email.ts'
import { REPORTS_AFTER_MS, refusal, sandboxNetwork, slow } from './network.ts'

/** Addresses here choose what becomes of a message; all others are delivered. */
const DOMAIN = 'sandbox.postgram.test'

/** What it remembers an email by; copy 0 is one that came whole. */
type Name = { id: string; copy: number }

type Report = Pick<Receipt, 'type' | 'recipient' | 'code' | 'text' | 'is_hard'>

const receiptsByName: Record<string, (recipient: string) => Report[]> = {
  bounce: (recipient) => [
    {
      type: 'bounced',
      recipient,
      code: '550 5.1.1',
      text: 'The mailbox does not exist.',
      is_hard: true,
    },
  ],
  softbounce: (recipient) => [
    { type: 'deferred', recipient, code: '452 4.2.2', text: 'The mailbox is full.' },
    {
      type: 'bounced',
      recipient,
      code: '552 5.2.2',
      text: 'The mailbox is full.',
      is_hard: false,
    },
  ],
  complaint: (recipient) => [
    { type: 'delivered', recipient },
    { type: 'complained', recipient, text: 'The recipient marked the message as spam.' },
  ],
}

/**
 * An email provider that sends nothing outside and behaves like a network: by the recipient's
 * address at sandbox.postgram.test it delivers, bounces (bounce@, softbounce@), gets complaints
 * (complaint@), defers once (slow@), refuses for good (reject@) or for now (unavailable@). What it
 * took is kept in the database, so it survives the process as a real provider would.
 */
export function createSandbox(call: Call): EmailProvider {
  const take = sandboxNetwork(call)
  const know = createBatcher<Name, boolean>((messages) => call('sandbox_knows', { messages }), {
    maxWeight: 1000,
  })

  return {
    name: 'sandbox',
    account: 'sandbox',
    signsHere: false,
    settlesWithinMs: 0,
    async send(email) {
      const names = email.recipients.map(nameOf)
      if (names.includes('reject'))
        return refusal('failed', 'message', '550 5.7.1', 'The sandbox rejects this.')
      if (names.includes('unavailable')) {
        return refusal('deferred', 'provider', '421 4.3.2', 'The sandbox is not available.')
      }
      if (names.includes('slow') && email.attempt === 1) return slow('message', '451 4.7.1')
      const name = takenAs(email)
      const reports = email.recipients
        .flatMap((recipient): Report[] => {
          const receiptsOf = receiptsByName[nameOf(recipient)]
          return receiptsOf ? receiptsOf(recipient) : [{ type: 'delivered', recipient }]
        })
        .map((report, place) => ({
          ...report,
          message_id: name.id,
          provider_event_id: `sandbox:${name.copy}.${place + 1}`,
        }))
      await take({ ...name, kind: 'email', reports, due_in_ms: REPORTS_AFTER_MS })
      return { outcome: 'sent' }
    },
    lookup: (email) => know(takenAs(email)),
    async createDomain({ name, selectors }) {
      return {
        keys: (['active', 'next'] as const).map((state, place) =>
          keyOf(name, selectors[place] ?? '', state),
        ),
        mail_from_mx: { priority: 10, host: `mx.${DOMAIN}` },
        mail_from_spf: `v=spf1 include:${DOMAIN} ~all`,
      }
    },
    checkDomain: async () => 'active',
    deleteDomain: async () => undefined,
    rotateDkim: async (name, { renew }) => keyOf(name, renew, 'next'),
    removeSuppression: async () => undefined,
    // It reports by itself.
    receiptsOf: async () => [],
    readCallback: null,
    examine: async () => null,
    close: async () => undefined,
  }
}

/** Not a key that signs anything, but the same whenever it is asked for, as a provider's would be. */
function keyOf(domain: string, selector: string, state: DkimKey['state']): DkimKey {
  const value = `k=rsa; p=${hash('sha256', `${selector} ${domain}`, 'base64')}`
  return { selector, state, value, private_key: null }
}

function takenAs({ id, copy }: OutgoingEmail): Name {
  return { id, copy: copy ?? 0 }
}

/** Whether an email goes nowhere but to the sandbox, whatever the provider: a rehearsal. */
export function isSandbox(recipients: readonly string[]): boolean {
  return recipients.every((address) => address.endsWith(`@${DOMAIN}`))
}

/** The name of a sandbox address without its +tag; empty for any other address. */
function nameOf(address: string): string {
  const [local, domain] = address.split('@')
  return domain === DOMAIN ? (local ?? '').replace(/\+.*$/, '') : ''
}
