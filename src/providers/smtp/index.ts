import { createTransport, type NodemailerError } from 'nodemailer'
import type { Secrets } from '../../crypto/secrets.ts'
import { makeDkimKey } from '../dkim-keys.ts'
import type { EmailProvider, Refused } from '../email.ts'
import { hintOf } from './hint.ts'
import { messageOf, signatureOf } from './message.ts'
import { RelayPool } from './pool.ts'
import { readRelay } from './relay.ts'
import { type Answer, confirmed, isForNow, unconfirmed } from './response.ts'

export type SmtpOptions = {
  url: string
  secrets: Secrets
  /** For a whole hand-over, with its time in the queue for a connection. */
  answersWithinMs?: number
}

/**
 * Less than the worker's patience: an email that it has given up must not leave later. RFC 5321
 * 4.5.3.2 would have us wait longer for the last reply.
 */
const ANSWERS_WITHIN_MS = 100_000

/** A relay may let a client wait before it greets, but not for long. */
const CONNECTS_WITHIN_MS = 30_000
const IDLE_FOR_MS = 30_000
const CLOSES_WITHIN_MS = 1000
const MAX_REPLY_BYTES = 64 * 1024

/** Time limits for the doctor, which a person waits for. */
const EXAMINED_WITHIN = { connectionTimeout: 5000, greetingTimeout: 5000, socketTimeout: 10_000 }

/**
 * Any relay that speaks SMTP, through nodemailer; messages are signed here. A relay reports nothing
 * of what it took, so messages stay sent, and it knows nothing of domains: DNS alone decides.
 */
export function createSmtp({
  url,
  secrets,
  answersWithinMs = ANSWERS_WITHIN_MS,
}: SmtpOptions): EmailProvider {
  const relay = readRelay(url)
  if ('problem' in relay) throw new Error(`SMTP_URL ${relay.problem}`)
  const pool = new RelayPool({
    ...relay.connection,
    connectionTimeout: CONNECTS_WITHIN_MS,
    greetingTimeout: CONNECTS_WITHIN_MS,
    socketTimeout: answersWithinMs,
    socketCloseTimeout: CLOSES_WITHIN_MS,
    idleTimeout: IDLE_FOR_MS,
    maxResponseSize: MAX_REPLY_BYTES,
    // Only of what the relay was given nothing of.
    maxRequeues: 2,
  })
  const transport = createTransport(pool, { disableFileAccess: true, disableUrlAccess: true })

  return {
    name: 'smtp',
    // Its host is in the records that domains publish.
    account: `smtp ${relay.publicHost}`,
    signsHere: true,
    settlesWithinMs: 0,
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
      const signal = AbortSignal.timeout(answersWithinMs)
      const offer = (to: string[]) =>
        transport
          .sendMail({ ...message, envelope: { from, to }, signal })
          .then(confirmed, unconfirmed)

      const { refused, ...answer } = await offer(email.recipients)
      if (answer.outcome !== 'sent' || refused.length === 0) return answer
      const left = await offerAgain(refused, offer)
      return left.length > 0 ? { ...answer, refused: left } : answer
    },
    // A relay cannot be asked. RFC 5321 4.5.4.1 has the client try again that got no answer at the end
    // of the content; the Message-ID is the same, by which receivers may know it.
    lookup: async () => false,
    // Made anew by each call: nobody has seen a key before the caller has kept it.
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
    async examine() {
      const examined = createTransport({ ...relay.connection, ...EXAMINED_WITHIN })
      try {
        await examined.verify()
        return null
      } catch (error) {
        return hintOf(error as NodemailerError)
      } finally {
        examined.close()
      }
    },
    // The worker has waited for what was worth waiting for.
    close: async () => transport.close({ force: true }),
  }
}

/**
 * A relay that takes so many recipients at a time and no more is offered the others in transactions of
 * their own (RFC 5321 4.5.3.1.10). Answers who is still refused; each round takes one at least.
 */
async function offerAgain(
  refused: Refused[],
  offer: (recipients: string[]) => Promise<Answer>,
): Promise<Refused[]> {
  const forGood = refused.filter((refusal) => !isForNow(refusal))
  const waiting = refused.filter(isForNow)
  if (waiting.length === 0) return forGood
  const { outcome, refused: again, code, text } = await offer(waiting.map((one) => one.recipient))
  if (outcome === 'sent') return [...forGood, ...(await offerAgain(again, offer))]
  const eachIsRefused = again.length === waiting.length
  return [
    ...forGood,
    ...(eachIsRefused ? again : waiting.map(({ recipient }) => ({ recipient, code, text }))),
  ]
}
