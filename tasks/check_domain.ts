import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Registry } from '../src/domains/registry.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** Checks one sending domain at the provider and in public DNS. Fails, and is retried, when one is unreachable. */
export default function checkDomain(registry: Registry): Task {
  return (payload) => registry.check(v.parse(payloadSchema, payload).id)
}
