import { parentPort, workerData } from 'node:worker_threads'
import { Refusal } from '../../errors.ts'
import { type Posted, type PostOptions, readPostBody } from './post-body.ts'
import type { ThreadResult } from './post-reader.ts'

/** The thread of post-reader.ts: reads each body that it is sent, and sends back what became of it. */
parentPort?.on('message', async (posted: Posted) => {
  parentPort?.postMessage(await resultOf(posted))
})

async function resultOf(posted: Posted): Promise<ThreadResult> {
  const { call } = posted
  try {
    return { call, body: await readPostBody(posted, workerData as PostOptions) }
  } catch (error) {
    // A Refusal would arrive as a mere Error.
    if (error instanceof Refusal)
      return { call, refusal: { code: error.code, fields: error.fields } }
    return { call, error }
  }
}
