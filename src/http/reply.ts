import type { Reply as StoredReply } from '../db/api.gen.ts'
import type { Reply } from './endpoint.ts'

/** Makes a reply of JSON text from Postgres, without the blanks that Postgres writes between tokens. */
export function reply(status: number, json: string, isReplay = false): Reply {
  return { status, body: JSON.stringify(JSON.parse(json)), isReplay }
}

/** Makes a reply of the row of type api.reply that an api function returned. */
export function replied([row]: StoredReply[]): Reply {
  const { status, body, replayed } = row as StoredReply
  return reply(status, body, replayed)
}
