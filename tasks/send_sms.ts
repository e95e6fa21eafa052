import type { Task } from 'graphile-worker'
import type { Call } from '../src/db/call.ts'
import { attemptSms } from '../src/providers/attempt.ts'
import { attemptTask, type OnOutcome } from '../src/providers/attempt-task.ts'
import type { SmsProvider } from '../src/providers/sms.ts'

export type SendSmsOptions = {
  provider: SmsProvider
  /** Takes sandbox messages, whatever the provider. */
  sandbox: SmsProvider
  onOutcome?: OnOutcome
}

/** Attempts one SMS: submits the parts that the network has not taken yet. */
export default function sendSms(
  call: Call,
  { provider, sandbox, onOutcome }: SendSmsOptions,
): Task {
  return attemptTask(call, {
    start: (ids) => call('start_sms', { ids }),
    onOutcome,
    async attempt(sms, timeLimit) {
      const chosen = sms.isSandbox ? sandbox : provider
      return { provider: chosen.name, ...(await attemptSms(chosen, sms, timeLimit)) }
    },
  })
}
