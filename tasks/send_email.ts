import type { Task } from 'graphile-worker'
import type { EmailToSend } from '../src/db/api.gen.ts'
import type { Call } from '../src/db/call.ts'
import type { Signer } from '../src/domains/signer.ts'
import { sendCopies } from '../src/marketing/send-copies.ts'
import type { UnsubscribeLinks } from '../src/marketing/unsubscribe-link.ts'
import { attemptEmail } from '../src/providers/attempt.ts'
import { attemptTask, type OnOutcome, type WorkerLimits } from '../src/providers/attempt-task.ts'
import type { EmailProvider, OutgoingEmail } from '../src/providers/email.ts'
import { createLargeBodies } from '../src/providers/large-bodies.ts'

export type SendEmailOptions = WorkerLimits & {
  provider: EmailProvider
  /** Takes sandbox messages, whatever the provider. */
  sandbox: EmailProvider
  links: UnsubscribeLinks
  sign: Signer
  responseTimeoutMs?: number | undefined
  onOutcome?: OnOutcome | undefined
}

/**
 * Creates the tasks send_email (of one email) and send_emails (of several). Attempts a transactional email as a whole,
 * a marketing one as a copy for each recipient.
 */
export default function sendEmail(
  call: Call,
  { provider, sandbox, links, sign, ...options }: SendEmailOptions,
): Task {
  const largeBodies = createLargeBodies()
  return attemptTask<EmailToSend>(call, {
    ...options,
    start: (ids, jobs) =>
      largeBodies.begin((free) => call('start_emails', { ids, jobs, large_bytes: free })),
    end: largeBodies.end,
    async attempt(email, timeLimit) {
      const chosen = email.isSandbox ? sandbox : provider
      const signed = await sign(chosen, email).catch(() => undefined)
      if (!signed) {
        const text = `The DKIM key of ${email.domain} could not be made.`
        return { provider: chosen.name, outcome: 'deferred', text }
      }
      const attemptOne = (outgoing: OutgoingEmail) => attemptEmail(chosen, outgoing, timeLimit)
      const result =
        signed.class === 'marketing'
          ? await sendCopies(signed, links, attemptOne)
          : await attemptOne({ ...signed, copy: null })
      return { provider: chosen.name, ...result }
    },
  })
}
