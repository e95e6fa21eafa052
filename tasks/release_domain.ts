import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Registry } from '../src/domains/registry.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** Removes a domain name that an operator released from the provider. */
export default function releaseDomain(registry: Registry): Task {
  return (payload) => registry.release(v.parse(payloadSchema, payload).id)
}
