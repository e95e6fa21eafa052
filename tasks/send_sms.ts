import type { Task } from 'graphile-worker'
import type { Call } from '../src/db/call.ts'
import { handOverSms } from '../src/providers/hand-over.ts'
import { handOverTask, type OnOutcome } from '../src/providers/hand-over-task.ts'
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
  return handOverTask(call, {
    start: (ids) => call('start_sms', { ids }),
    answersWithinMs,
    onOutcome,
    async handOver(sms, patience) {
      const taker = sms.isRehearsal ? sandbox : provider
      return { provider: taker.name, ...(await handOverSms(taker, sms, patience)) }
    },
  })
}
