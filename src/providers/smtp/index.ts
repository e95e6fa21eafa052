import { createTransport, type NodemailerError } from 'nodemailer'
import type { Secrets } from '../../crypto/secrets.ts'
import type { RefusedRecipient } from '../../db/api.gen.ts'
import { makeDkimKey } from '../dkim-keys.ts'
import type { EmailProvider } from '../email.ts'
import { hintOf } from './hint.ts'
import { messageOf, signatureOf } from './message.ts'
import { RelayPool } from './pool.ts'
import { readRelay } from './relay.ts'
import { confirmed, isTemporary, type RelayResult, unconfirmed } from './response.ts'

export type SmtpOptions = {
  url: string
  secrets: Secrets
  /** For a whole attempt, including the wait for a connection. */
  timeoutMs?: number
}

/**
 * Shorter than the worker's limit for an attempt, so that no email is sent after its attempt is over. RFC 5321
 * 4.5.3.2 recommends a longer wait for the last reply.
 */
const TIMEOUT_MS = 100_000

/** A relay may delay its greeting. */
const CONNECT_TIMEOUT_MS = 30_000
const IDLE_TIMEOUT_MS = 30_000
const CLOSE_TIMEOUT_MS = 1000
const MAX_REPLY_BYTES = 64 * 1024

/** Time limits of check(): a person waits for the result. */
const CHECK_TIMEOUTS = { connectionTimeout: 5000, greetingTimeout: 5000, socketTimeout: 10_000 }

/**
 * Sends through an SMTP relay with nodemailer, signed with Postgram's DKIM keys. A relay sends no receipts, so
 * messages keep the status `sent`. It does not manage domains, so DNS alone decides whether one is verified.
 */
export function createSmtp({ url, secrets, timeoutMs = TIMEOUT_MS }: SmtpOptions): EmailProvider {
  const relay = readRelay(url)
  if ('problem' in relay) throw new Error(`SMTP_URL ${relay.problem}`)
  const pool = new RelayPool({
    ...relay.connection,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: timeoutMs,
    socketCloseTimeout: CLOSE_TIMEOUT_MS,
    idleTimeout: IDLE_TIMEOUT_MS,
    maxResponseSize: MAX_REPLY_BYTES,
    // nodemailer requeues only messages that the relay has not seen.
    maxRequeues: 2,
  })
  const transport = createTransport(pool, { disableFileAccess: true, disableUrlAccess: true })

  return {
    name: 'smtp',
    // Domains publish records with this host, so another host is another account.
    account: `smtp ${relay.publicHost}`,
    signsHere: true,
    lookupDelayMs: 0,
    async send(email) {
      const message = messageOf(email)
      try {
        const dkim = signatureOf(email, secrets)
        if (dkim) message.dkim = dkim
      } catch {
        const text = `The DKIM key of ${email.domain} cannot be opened with SECRET_KEY.`
        return { outcome: 'deferred', text }
      }
      const from = `bounces@${email.mailFromDomain}`
      const signal = AbortSignal.timeout(timeoutMs)
      const offer = (to: string[]) =>
        transport
          .sendMail({ ...message, envelope: { from, to }, signal })
          .then(confirmed, unconfirmed)

      const { refused, ...result } = await offer(email.recipients)
      if (result.outcome !== 'sent' || refused.length === 0) return result
      const stillRefused = await offerAgain(refused, offer)
      return stillRefused.length > 0 ? { ...result, refused: stillRefused } : result
    },
    // A relay cannot be asked. RFC 5321 4.5.4.1 has the client send again if it got no reply after the
    // content. The Message-ID is the same, so receivers can recognise the duplicate.
    lookup: async () => false,
    // Each call makes new keys: a key is not published before the caller has stored it.
    createDomain: async ({ selectors: [active = '', next = ''] }) => ({
      keys: await Promise.all([
        makeDkimKey(secrets, active, 'active'),
        makeDkimKey(secrets, next, 'next'),
      ]),
      mail_from_mx: { priority: 10, host: relay.publicHost },
      mail_from_spf: `v=spf1 a:${relay.publicHost} ~all`,
    }),
    checkDomain: async () => 'active',
    deleteDomain: async () => undefined,
    rotateDkim: (_, { renew }) => makeDkimKey(secrets, renew, 'next'),
    removeSuppression: async () => undefined,
    receiptsOf: async () => [],
    readCallback: null,
    async check() {
      const checked = createTransport({ ...relay.connection, ...CHECK_TIMEOUTS })
      try {
        await checked.verify()
        return null
      } catch (error) {
        return hintOf(error as NodemailerError)
      } finally {
        checked.close()
      }
    },
    // The worker has already waited for its attempts.
    close: async () => transport.close({ force: true }),
  }
}

/**
 * A relay may limit the recipients of one transaction (RFC 5321 4.5.3.1.10). Offers those that it refused
 * temporarily in further transactions, and returns those still refused. Each round that continues settles
 * at least one recipient, so it ends.
 */
async function offerAgain(
  refused: RefusedRecipient[],
  offer: (recipients: string[]) => Promise<RelayResult>,
): Promise<RefusedRecipient[]> {
  const permanent = refused.filter((refusal) => !isTemporary(refusal))
  const waiting = refused.filter(isTemporary)
  if (waiting.length === 0) return permanent
  const { outcome, refused: again, code, text } = await offer(waiting.map((one) => one.recipient))
  if (outcome === 'sent') return [...permanent, ...(await offerAgain(again, offer))]
  const hasReplyForEach = again.length === waiting.length
  return [
    ...permanent,
    ...(hasReplyForEach ? again : waiting.map(({ recipient }) => ({ recipient, code, text }))),
  ]
}
