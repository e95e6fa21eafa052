import { hash } from 'node:crypto'
import type { DkimKey, SandboxCopy, SandboxItem } from '../../db/api.gen.ts'
import { createBatcher, createRecorder, MAX_IN_ONE_COMMIT } from '../../db/batcher/index.ts'
import type { Call } from '../../db/call.ts'
import type { EmailProvider, OutgoingEmail, Receipt } from '../email.ts'
import { PATIENTLY, REPORTS_AFTER_MS, refusal, slow } from './network.ts'

/** Addresses at this domain select the simulated outcome; every other address is delivered. */
const DOMAIN = 'sandbox.postgram.test'

type Report = Pick<Receipt, 'type' | 'code' | 'text' | 'is_hard'>

/**
 * Creates an email provider that sends nothing and simulates a network. The recipient's address at
 * sandbox.postgram.test selects the outcome: bounce@, softbounce@ and complaint@ get receipts of these names, slow@
 * is deferred once, reject@ is refused permanently, unavailable@ temporarily; every other address is delivered. The
 * database stores what the sandbox took, so it survives a restart of the process.
 */
export function createSandbox(call: Call): EmailProvider {
  const take = createRecorder<SandboxItem>((messages) =>
    call('sandbox_take', { messages }, PATIENTLY),
  )
  const isKnown = createBatcher<SandboxCopy, boolean>(
    (messages) => call('sandbox_knows', { messages }, PATIENTLY),
    { maxWeight: MAX_IN_ONE_COMMIT },
  )

  return {
    name: 'sandbox',
    account: 'sandbox',
    signsHere: false,
    lookupDelayMs: 0,
    async send(email) {
      const names = email.recipients.map(outcomeOf)
      if (names.includes('reject'))
        return refusal('failed', 'message', '550 5.7.1', 'The sandbox rejects this.')
      if (names.includes('unavailable')) {
        return refusal('deferred', 'provider', '421 4.3.2', 'The sandbox is not available.')
      }
      if (names.includes('slow') && email.attempt === 1) return slow('message', '451 4.7.1')
      const name = nameOf(email)
      const reports = email.recipients
        .flatMap((recipient) => reportsOf(recipient).map((report) => ({ ...report, recipient })))
        .map((report, place) => ({
          ...report,
          message_id: name.id,
          provider_event_id: `sandbox:${name.copy}.${place + 1}`,
        }))
      await take({ ...name, kind: 'email', reports, due_in_ms: REPORTS_AFTER_MS })
      return { outcome: 'sent' }
    },
    lookup: (email) => isKnown(nameOf(email)),
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
    // reportSandbox() delivers the receipts.
    receiptsOf: async () => [],
    readCallback: null,
    check: async () => null,
    close: async () => undefined,
  }
}

function reportsOf(recipient: string): Report[] {
  switch (outcomeOf(recipient)) {
    case 'bounce': {
      const text = 'The mailbox does not exist.'
      return [{ type: 'bounced', code: '550 5.1.1', text, is_hard: true }]
    }
    case 'softbounce': {
      const text = 'The mailbox is full.'
      return [
        { type: 'deferred', code: '452 4.2.2', text },
        { type: 'bounced', code: '552 5.2.2', text, is_hard: false },
      ]
    }
    case 'complaint': {
      const text = 'The recipient marked the message as spam.'
      return [{ type: 'delivered' }, { type: 'complained', text }]
    }
    default:
      return [{ type: 'delivered' }]
  }
}

/** Returns a simulated key, the same for each call. It signs nothing. */
function keyOf(domain: string, selector: string, state: DkimKey['state']): DkimKey {
  const value = `k=rsa; p=${hash('sha256', `${selector} ${domain}`, 'base64')}`
  return { selector, state, value, private_key: null }
}

/** Copy 0 is an email that was sent as a whole. */
function nameOf({ id, copy }: OutgoingEmail): SandboxCopy {
  return { id, copy: copy ?? 0 }
}

/** Whether an email is a sandbox message, whatever the provider: all its recipients are sandbox addresses. */
export function isSandbox(recipients: readonly string[]): boolean {
  return recipients.every((address) => address.endsWith(`@${DOMAIN}`))
}

/** Returns the local part of a sandbox address without its +tag; '' for any other address. */
function outcomeOf(address: string): string {
  const [local, domain] = address.split('@')
  return domain === DOMAIN ? (local ?? '').replace(/\+.*$/, '') : ''
}
