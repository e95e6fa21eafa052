import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Notice } from '../src/db/api.gen.ts'
import type { Call } from '../src/db/call.ts'
import type { Signer } from '../src/domains/signer.ts'
import { writeNotice } from '../src/notifications/notices.ts'
import { attemptEmail } from '../src/providers/attempt.ts'
import type { EmailProvider, OutgoingEmail } from '../src/providers/email.ts'
import { isSandbox } from '../src/providers/sandbox/email.ts'
import { type Address, parseAddress } from '../src/schemas/address.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** Providers have shorter limits. This one frees the slot when a provider never responds. */
const ATTEMPT_TIMEOUT_MS = 120_000

export type NotifyOwnerOptions = {
  provider: EmailProvider
  /** Takes mail to sandbox addresses, whatever the provider. */
  sandbox: EmailProvider
  sign: Signer
  /** SYSTEM_FROM: the sender. */
  systemFrom: string
  mailFromLabel: string
  publicUrl: string
  /** Decrypts what SECRET_KEY sealed. */
  openSecret(sealed: string): string
}

/**
 * Sends one notice to the owner of an organisation or to a user of the dashboard. As for a message, the attempt is
 * committed before the provider is called, and after an ambiguous attempt the provider is asked before the next one.
 * An attempt that does not settle the notice fails the job, which graphile-worker retries for some days.
 */
export default function notifyOwner(call: Call, options: NotifyOwnerOptions): Task {
  const { provider, sandbox, publicUrl } = options
  const sender = senderOf(options)
  return async (payload, { abortSignal: signal }) => {
    const { id } = v.parse(payloadSchema, payload)
    const [notice] = await call('start_notice', { id, from_domain: sender.domain })
    if (!notice) return
    const email = {
      ...emailOf(notice, sender),
      ...writeNotice(withToken(notice, options), publicUrl),
    }
    const chosen = isSandbox(email.recipients) ? sandbox : provider
    const attempt = await attemptEmail(chosen, await options.sign(chosen, email), {
      signal,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
    })
    const result = { id, ...attempt }
    const isSettled = await call('finish_notice', { result })
    // The provider's message may name the owner's address, which must not reach a log.
    if (!isSettled)
      throw new Error(`the notice is ${attempt.outcome}; see ops.notices for the reason`)
  }
}

/** Returns a notice with the token of its link in plain text. */
function withToken(notice: Notice, { openSecret }: NotifyOwnerOptions): Notice {
  const { sealedToken } = (notice.detail ?? {}) as { sealedToken?: unknown }
  if (typeof sealedToken !== 'string') return notice
  return { ...notice, detail: { token: openSecret(sealedToken) } }
}

type Sender = Address & { text: string; mailFromDomain: string }

function senderOf({ systemFrom, mailFromLabel }: NotifyOwnerOptions): Sender {
  const parsed = parseAddress(systemFrom)
  if ('problem' in parsed) throw new Error(`SYSTEM_FROM ${parsed.problem}`)
  return { ...parsed, text: systemFrom, mailFromDomain: `${mailFromLabel}.${parsed.domain}` }
}

function emailOf(notice: Notice, sender: Sender): Omit<OutgoingEmail, 'subject' | 'text'> {
  const { ownerEmail, ambiguousSince } = notice
  return {
    ...notice,
    // Only unsubscribe links of marketing email name it.
    organisationId: notice.organisationId ?? '',
    isAmbiguous: ambiguousSince !== null,
    isSandbox: false,
    domain: sender.domain,
    mailFromDomain: sender.mailFromDomain,
    fromAddress: sender.address,
    sender: sender.text,
    to: [ownerEmail],
    cc: [],
    bcc: [],
    recipients: [ownerEmail.toLowerCase()],
    replyTo: null,
    html: null,
    headers: null,
    tags: [],
    class: 'transactional',
    settledRecipients: null,
    largeBytes: 0,
    copy: null,
  }
}
