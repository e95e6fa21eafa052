import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Registry } from '../src/domains/registry.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** Checks one sending domain with the provider and public DNS; what is unreachable is tried again. */
export default function checkDomain(registry: Registry): Task {
  return (payload) => registry.check(v.parse(payloadSchema, payload).id)
}
