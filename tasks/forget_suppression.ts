import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import { type EmailProvider, ProviderUnavailable } from '../src/providers/email.ts'

const payloadSchema = v.object({
  email: v.pipe(v.string(), v.minLength(3), v.maxLength(254)),
  domains: v.pipe(v.array(v.pipe(v.string(), v.minLength(3), v.maxLength(253))), v.maxLength(100)),
})

/**
 * Lets the provider, which suppresses by itself, send to an address again from these domains. What
 * was forgotten already may be forgotten again, so the job is repeated whole until all of it is.
 */
export default function forgetSuppression(provider: EmailProvider): Task {
  return async (payload, { abortSignal }) => {
    const { email, domains } = v.parse(payloadSchema, payload)
    const failures: Error[] = []
    for (const domain of domains) {
      abortSignal?.throwIfAborted()
      // One domain in trouble must not keep the others from it.
      await provider.forgetSuppression(domain, email).catch((error) => failures.push(error))
    }
    const [failure] = failures
    // The provider's words may name the address, which has no place in a log.
    if (failure) throw new ProviderUnavailable(failure.message.replaceAll(email, 'the address'))
  }
}
