import type { Sql } from '../../src/db/client.ts'

/** Whose key takes part in an attack. */
export type Attacker = {
  key: string
  /** A verified domain of its own. */
  domain: string
  /** What `prepare` made for it. */
  ids: string[]
}

export type Attack = {
  name: string
  /** What the attack does, for the reader of the table. */
  title: string
  /** The attack does not depend on who is attacking: one row, with one live key. */
  isKeyless?: true
  /** The service runs with Mailgun, whose API takes two seconds to respond; nothing leaves this machine. */
  hasSlowProvider?: true
  /** Makes what the attack needs in the database, as its owner; one of `share` organisations that do. */
  prepare?(sql: Sql, organisation: string, share: number): Promise<string[]>
  /** Builds what is sent, before anything is measured. The result runs the attack until `gun.isOver()`. */
  aim(gun: Gun): () => Promise<void>
}

/** One request of an attack. */
export type Shot = {
  method?: 'GET' | 'POST' | 'DELETE'
  path: string
  key: string
  body?: Buffer | string
  headers?: Record<string, string>
}

export type Gun = {
  attackers: Attacker[]
  host: string
  port: number
  /** The attack has used up its time. */
  isOver(): boolean
  /** Settles when the time is used up. */
  over: Promise<void>
  /** Sends one request and counts the response by status, or by the error's code. */
  fire(shot: Shot): Promise<void>
  /**
   * Fires from `lanes` places at a time, for each attacker: `next` makes the nth shot of an attacker, up to
   * `count` shots of each.
   */
  flood(
    lanes: number,
    next: (attacker: Attacker, n: number) => Shot,
    options?: { count?: number },
  ): Promise<void>
  /** Counts something that is not a response. */
  note(what: string): void
}

/** An email that is sent to the sandbox. */
export function anEmail(domain: string, to: string | string[] = 'delivered@sandbox.postgram.test') {
  return { from: `hello@${domain}`, to, subject: 'Hello', text: 'Hello.' }
}

/** An email as a shot. */
export function email(attacker: Attacker, content: object): Shot {
  return { path: '/v1/emails', key: attacker.key, body: JSON.stringify(content) }
}
