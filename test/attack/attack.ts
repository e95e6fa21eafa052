import type { Sql } from '../../src/db/client.ts'

/** An attacking organisation. */
export type Attacker = {
  key: string
  /** Its verified domain. */
  domain: string
  /** The IDs that `prepare` returned. */
  ids: string[]
}

export type Attack = {
  name: string
  /** What the attack does, for `--list`. */
  title: string
  /** The attack does not depend on its key, so it runs once, with one live key. */
  isKeyless?: true
  /** The service uses a local stub of Mailgun's API that responds after 2 s. */
  hasSlowProvider?: true
  /** Prepares one of `share` attacking organisations in the database; returns IDs for the attack. */
  prepare?(sql: Sql, organisation: string, share: number): Promise<string[]>
  /** Builds the requests before the measurement. The returned function attacks until `client.isOver()`. */
  build(client: AttackClient): () => Promise<void>
}

/** One request of an attack. */
export type AttackRequest = {
  method?: 'GET' | 'POST' | 'DELETE'
  path: string
  key: string
  body?: Buffer | string
  headers?: Record<string, string>
}

export type AttackClient = {
  attackers: Attacker[]
  host: string
  port: number
  /** Whether the time of the attack is over. */
  isOver(): boolean
  /** Settles when the time is over. */
  over: Promise<void>
  /** Sends a request and counts the response by its status, or the error by its code. */
  send(request: AttackRequest): Promise<void>
  /**
   * Sends requests of each attacker, `lanes` at a time and up to `count`: `next` returns the nth request of an
   * attacker.
   */
  repeat(
    lanes: number,
    next: (attacker: Attacker, n: number) => AttackRequest,
    options?: { count?: number },
  ): Promise<void>
  /** Counts another result than a response. */
  note(what: string): void
}

/** An email to the sandbox. */
export function anEmail(domain: string, to: string | string[] = 'delivered@sandbox.postgram.test') {
  return { from: `hello@${domain}`, to, subject: 'Hello', text: 'Hello.' }
}

/** The request that sends an email. */
export function email(attacker: Attacker, content: object): AttackRequest {
  return { path: '/v1/emails', key: attacker.key, body: JSON.stringify(content) }
}
