import type { Task } from 'graphile-worker'
import type { EmailToSend } from '../src/db/api.gen.ts'
import type { Call } from '../src/db/call.ts'
import type { Signer } from '../src/domains/signer.ts'
import { sendCopies } from '../src/marketing/send-copies.ts'
import type { UnsubscribeLinks } from '../src/marketing/unsubscribe-link.ts'
import { attemptSend } from '../src/providers/attempt.ts'
import { attemptTask, type OnOutcome } from '../src/providers/attempt-task.ts'
import type { EmailProvider } from '../src/providers/email.ts'
import { createLargeBodies } from '../src/providers/large-bodies.ts'

export type SendEmailOptions = {
  provider: EmailProvider
  /** Takes rehearsals, whatever the provider. */
  sandbox: EmailProvider
  links: UnsubscribeLinks
  sign: Signer
  answersWithinMs?: number
  onOutcome?: OnOutcome
}

/** Hands one email to the provider, as one or as several copies. */
export default function sendEmail(
  call: Call,
  { provider, sandbox, links, sign, answersWithinMs, onOutcome }: SendEmailOptions,
): Task {
  const largeBodies = createLargeBodies()
  return attemptTask<EmailToSend>(call, {
    start: (ids) => largeBodies.begin((free) => call('start_emails', { ids, large_bytes: free })),
    end: largeBodies.end,
    answersWithinMs,
    onOutcome,
    async attemptSend(email, patience) {
      const taker = email.isSandbox ? sandbox : provider
      const signed = await sign(taker, email).catch(() => undefined)
      if (!signed) {
        const text = `The DKIM key of ${email.domain} could not be made.`
        return { provider: taker.name, outcome: 'deferred', text }
      }
      const outcome = await sendCopies(signed, links, (copy) => attemptSend(taker, copy, patience))
      return { provider: taker.name, ...outcome }
    },
  })
}
