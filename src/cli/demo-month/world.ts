import type { Receipt, SmsReceipt } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import type { Sql } from '../../db/client.ts'
import type { Planned } from './plan.ts'

export const SECOND_MS = 1000
export const HOUR_MS = 3600 * SECOND_MS

/** What the month needs at each of its times. */
export type World = {
  call: Call
  sql: Sql
  /** The organisation's ID, and its UUID. */
  organisation: string
  uuid: string
  /** When the month ends. */
  end: number
  templates: ReadonlyMap<string, string>
  random: () => number
  waiting: Map<string, Waiting>
  receipts: Due<Receipt>[]
  smsReceipts: Due<SmsReceipt>[]
  later: Due<() => Promise<unknown>>[]
}

type Waiting = { planned: Planned; from: number }

export type Due<Value> = { at: number; value: Value }

/** Sets the test clock of the transaction. */
export const setClock = (sql: Sql, at: number) =>
  sql`select set_config('postgram.now', ${new Date(at).toISOString()}, true)`
