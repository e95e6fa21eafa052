import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Call } from '../src/db/call.ts'
import { type EmailProvider, ProviderUnavailable } from '../src/providers/email.ts'

const payloadSchema = v.object({ organisation: v.pipe(v.string(), v.uuid()) })

/**
 * Removes addresses from the provider's own suppression list after an organisation removed them from its
 * list. Each job takes some addresses and enqueues the next job for the rest, so that an organisation
 * has one call to the provider at a time. An address that fails stays, and the job is retried.
 */
export default function removeSuppression(call: Call, provider: EmailProvider): Task {
  return async (payload, { abortSignal, job }) => {
    const { organisation: organisation_id } = v.parse(payloadSchema, payload)
    const removed: string[] = []
    const failures: Error[] = []
    for (const { email, domains } of await call('start_suppression_removals', {
      organisation_id,
    })) {
      const before = failures.length
      for (const domain of domains) {
        if (abortSignal?.aborted) break
        // The provider's message may name the address, which must not reach a log.
        await provider.removeSuppression(domain, email).catch(({ message }: Error) => {
          failures.push(new ProviderUnavailable(message.replaceAll(email, 'the address')))
        })
      }
      if (abortSignal?.aborted) failures.push(abortSignal.reason)
      if (failures.length === before) removed.push(email)
    }
    const [failure] = failures
    await call('finish_suppression_removals', {
      organisation_id,
      emails: removed,
      ...(failure ? {} : { job: job.id }),
    })
    if (failure) throw failure
  }
}
