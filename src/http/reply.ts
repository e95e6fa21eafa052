import type { Reply as StoredReply } from '../db/api.gen.ts'
import type { Reply } from './endpoint.ts'

/** Answers JSON text of Postgres, without the blanks that it puts there and no other answer has. */
export function reply(status: number, json: string, isReplay = false): Reply {
  return { status, body: JSON.stringify(JSON.parse(json)), isReplay }
}

/** Answers what a function of schema api replied to a call: its one row of type api.reply. */
export function replied([row]: StoredReply[]): Reply {
  const { status, body, replayed } = row as StoredReply
  return reply(status, body, replayed)
}
