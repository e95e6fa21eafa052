import type { Task } from 'graphile-worker'
import type { EmailToSend } from '../src/db/api.gen.ts'
import type { Call } from '../src/db/call.ts'
import type { Signer } from '../src/domains/signer.ts'
import { sendCopies } from '../src/marketing/send-copies.ts'
import type { UnsubscribeLinks } from '../src/marketing/unsubscribe-link.ts'
import { attemptEmail } from '../src/providers/attempt.ts'
import { attemptTask, type OnOutcome } from '../src/providers/attempt-task.ts'
import type { EmailProvider, OutgoingEmail } from '../src/providers/email.ts'
import { createLargeBodies } from '../src/providers/large-bodies.ts'

export type SendEmailOptions = {
  provider: EmailProvider
  /** Takes sandbox messages, whatever the provider. */
  sandbox: EmailProvider
  links: UnsubscribeLinks
  sign: Signer
  responseTimeoutMs?: number
  onOutcome?: OnOutcome
}

/** Attempts one email: a transactional one as a whole, a marketing one as a copy for each recipient. */
export default function sendEmail(
  call: Call,
  { provider, sandbox, links, sign, responseTimeoutMs, onOutcome }: SendEmailOptions,
): Task {
  const largeBodies = createLargeBodies()
  return attemptTask<EmailToSend>(call, {
    start: (ids) => largeBodies.begin((free) => call('start_emails', { ids, large_bytes: free })),
    end: largeBodies.end,
    responseTimeoutMs,
    onOutcome,
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
