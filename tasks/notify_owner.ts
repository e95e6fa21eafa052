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

/** Providers have shorter limits of their own; what never answers must not keep its place for good. */
const ANSWERS_WITHIN_MS = 120_000

export type NotifyOwnerOptions = {
  provider: EmailProvider
  /** Takes what goes to its own addresses, whatever the provider. */
  sandbox: EmailProvider
  sign: Signer
  /** The sender, as SYSTEM_FROM has it. */
  systemFrom: string
  mailFromLabel: string
  publicUrl: string
}

/**
 * Sends one notice to the owner of an organisation. Like the hand-over of a message: committed as
 * begun before the provider is called, asked after before it is repeated (promise 4). What does not
 * settle it fails the job, which graphile-worker tries again for some days.
 */
export default function notifyOwner(call: Call, options: NotifyOwnerOptions): Task {
  const { provider, sandbox, publicUrl } = options
  const sender = senderOf(options)
  return async (payload, { abortSignal: signal }) => {
    const { id } = v.parse(payloadSchema, payload)
    const [notice] = await call('start_notice', { id, from_domain: sender.domain })
    if (!notice) return
    const email = { ...emailOf(notice, sender), ...writeNotice(notice, publicUrl) }
    const taker = isSandbox(email.recipients) ? sandbox : provider
    const attempt = await attemptEmail(taker, await options.sign(taker, email), {
      signal,
      timeoutMs: ANSWERS_WITHIN_MS,
    })
    const result = JSON.stringify({ id, ...attempt })
    const isSettled = await call('finish_notice', { result })
    // The provider's words may name the owner's address, which has no place in a log.
    if (!isSettled) throw new Error(`it is ${attempt.outcome}; ops.notices has the reason`)
  }
}

type Sender = Address & { text: string; mailFromDomain: string }

function senderOf({ systemFrom, mailFromLabel }: NotifyOwnerOptions): Sender {
  const parsed = parseAddress(systemFrom)
  if ('problem' in parsed) throw new Error(`SYSTEM_FROM ${parsed.problem}`)
  return { ...parsed, text: systemFrom, mailFromDomain: `${mailFromLabel}.${parsed.domain}` }
}

function emailOf(notice: Notice, sender: Sender): Omit<OutgoingEmail, 'subject' | 'text'> {
  const { id, organisationId, attempt, startedAt, ambiguousSince, ownerEmail } = notice
  const { dkimSelector, dkimPrivateKey } = notice
  const recipients = [ownerEmail.toLowerCase()]
  return {
    id,
    organisationId,
    attempt,
    startedAt,
    ambiguousSince,
    isAmbiguous: ambiguousSince !== null,
    isSandbox: false,
    domain: sender.domain,
    mailFromDomain: sender.mailFromDomain,
    dkimSelector,
    dkimPrivateKey,
    fromAddress: sender.address,
    sender: sender.text,
    to: [ownerEmail],
    cc: [],
    bcc: [],
    recipients,
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
