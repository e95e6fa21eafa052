import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Call } from '../src/db/call.ts'
import type { Poster } from '../src/webhooks/post.ts'

const payloadSchema = v.object({ endpoint: v.pipe(v.string(), v.uuid()) })

export type DeliverWebhookOptions = {
  poster: Poster
  /** A signing secret as core.make_secret sealed it -> itself. */
  openSecret(sealed: string): Promise<string>
}

/** Takes an endpoint's turn: posts what is due there, until nothing is. */
export default function deliverWebhook(_call: Call, _options: DeliverWebhookOptions): Task {
  return async (payload) => {
    v.parse(payloadSchema, payload)
  }
}
