import type { Task } from 'graphile-worker'
import type { Call } from '../src/db/call.ts'
import { attemptSms } from '../src/providers/attempt.ts'
import { attemptTask, type OnOutcome } from '../src/providers/attempt-task.ts'
import type { SmsProvider } from '../src/providers/sms.ts'

export type SendSmsOptions = {
  provider: SmsProvider
  /** Takes rehearsals, whatever the provider. */
  sandbox: SmsProvider
  answersWithinMs?: number
  onOutcome?: OnOutcome
}

/** Hands one SMS to the network, all its parts that are not taken yet. */
export default function sendSms(
  call: Call,
  { provider, sandbox, answersWithinMs, onOutcome }: SendSmsOptions,
): Task {
  return attemptTask(call, {
    start: (ids) => call('start_sms', { ids }),
    answersWithinMs,
    onOutcome,
    async attempt(sms, timeLimit) {
      const taker = sms.isSandbox ? sandbox : provider
      return { provider: taker.name, ...(await attemptSms(taker, sms, timeLimit)) }
    },
  })
}
