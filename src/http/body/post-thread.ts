import { parentPort, workerData } from 'node:worker_threads'
import { Refusal } from '../../errors.ts'
import { type Posted, type PostOptions, readPostBody } from './post-body.ts'
import type { ThreadResult } from './post-reader.ts'

/** The thread of post-reader.ts: parses each body that it receives and sends the result back. */
parentPort?.on('message', async (posted: Posted) => {
  parentPort?.postMessage(await resultOf(posted))
})

async function resultOf(posted: Posted): Promise<ThreadResult> {
  const { call } = posted
  try {
    return { call, body: await readPostBody(posted, workerData as PostOptions) }
  } catch (error) {
    // Sent as it is, a Refusal would arrive as a plain Error.
    if (error instanceof Refusal)
      return { call, refusal: { code: error.code, fields: error.fields } }
    return { call, error }
  }
}
