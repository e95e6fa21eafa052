import type { Reply as StoredReply } from '../db/api.gen.ts'
import { Refusal } from '../errors.ts'
import type { Reply } from './endpoint.ts'

/** Makes a reply of JSON text from Postgres, without the blanks that Postgres writes between tokens. */
export function reply(status: number, json: string, isReplay = false): Reply {
  return { status, body: JSON.stringify(JSON.parse(json)), isReplay }
}

/** Makes a reply of JSON text from Postgres; null: throws the Refusal `not_found`. */
export function found(json: string | null): Reply {
  if (json === null) throw new Refusal('not_found')
  return reply(200, json)
}

/** Makes a reply of the row of type api.reply that an api function returned. */
export function replied({ status, body, replayed }: StoredReply): Reply {
  return reply(status, body, replayed)
}
