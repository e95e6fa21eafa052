import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Registry } from '../src/domains/registry.ts'

const selector = v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,63}$/))
const payloadSchema = v.object({
  id: v.pipe(v.string(), v.uuid()),
  activate: selector,
  retire: selector,
  renew: selector,
})

/** Rotates the DKIM keys of one domain. Retried until DNS has the key that signs next. */
export default function rotateDkim(registry: Registry): Task {
  return (payload) => {
    const { id, ...rotation } = v.parse(payloadSchema, payload)
    return registry.rotate(id, rotation)
  }
}
