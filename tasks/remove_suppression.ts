import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Call } from '../src/db/call.ts'
import { type EmailProvider, ProviderUnavailable } from '../src/providers/email.ts'

const payloadSchema = v.object({ organisation: v.pipe(v.string(), v.uuid()) })

/**
 * Lets the provider, which suppresses by itself, send again to addresses that an organisation removed
 * from its list. Each job takes some of them and enqueues the next job for the others, so that one
 * organisation has one call to the provider at a time. An address that fails stays, and the job is
 * tried again.
 */
export default function removeSuppression(call: Call, provider: EmailProvider): Task {
  return async (payload, { abortSignal, job }) => {
    const { organisation: organisation_id } = v.parse(payloadSchema, payload)
    const forgotten: string[] = []
    const failures: Error[] = []
    for (const { email, domains } of await call('start_suppression_removals', {
      organisation_id,
    })) {
      const before = failures.length
      for (const domain of domains) {
        if (abortSignal?.aborted) break
        // The provider's words may name the address, which has no place in a log.
        await provider.removeSuppression(domain, email).catch(({ message }: Error) => {
          failures.push(new ProviderUnavailable(message.replaceAll(email, 'the address')))
        })
      }
      if (abortSignal?.aborted) failures.push(abortSignal.reason)
      if (failures.length === before) forgotten.push(email)
    }
    const [failure] = failures
    await call('finish_suppression_removals', {
      organisation_id,
      emails: forgotten,
      ...(failure ? {} : { job: job.id }),
    })
    if (failure) throw failure
  }
}
