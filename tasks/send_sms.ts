import type { Task } from 'graphile-worker'
import type { Call } from '../src/db/call.ts'
import { attemptSms } from '../src/providers/attempt.ts'
import { attemptTask, type OnOutcome, type WorkerLimits } from '../src/providers/attempt-task.ts'
import type { SmsProvider } from '../src/providers/sms.ts'

export type SendSmsOptions = WorkerLimits & {
  provider: SmsProvider
  /** Takes sandbox messages, whatever the provider. */
  sandbox: SmsProvider
  onOutcome?: OnOutcome | undefined
}

/**
 * Creates the tasks send_sms (of one SMS) and send_sms_messages (of several). Submits the parts that the network has
 * not taken yet.
 */
export default function sendSms(
  call: Call,
  { provider, sandbox, ...options }: SendSmsOptions,
): Task {
  return attemptTask(call, {
    ...options,
    start: (ids, jobs) => call('start_sms', { ids, jobs }),
    async attempt(sms, timeLimit) {
      const chosen = sms.isSandbox ? sandbox : provider
      return { provider: chosen.name, ...(await attemptSms(chosen, sms, timeLimit)) }
    },
  })
}
