import type { EmailToSend, SentEmail } from '../db/api.gen.ts'

export type { SentEmail }

/**
 * An email as a provider is handed it. Marketing to several recipients goes out as one copy each:
 * `copy` is the copy's number from 1 on, null for an email that goes out whole.
 */
export type OutgoingEmail = EmailToSend & { copy: number | null }

/**
 * What became of a hand-over: sent, refused for good (failed), refused for now (deferred), or nobody
 * knows (ambiguous), as after a timeout.
 */
export type SendResult = {
  outcome: 'sent' | 'failed' | 'deferred' | 'ambiguous'
  /** Of one that is deferred: when to try again, if the provider says so. */
  retry_in_ms?: number
  /** What a hand-over that did not succeed says of the provider; absent when the provider was not asked to take the message. */
  about?: About
  /** The provider's own code and words. */
  code?: string
  text?: string
  /** Of an email that is sent: those of its recipients that it does not go to, in lower case. */
  refused?: Refused[]
}

/**
 * Whom a failure concerns, which decides whether it counts for the provider's health:
 * - `message`: the provider works and refuses this message, its sender or its recipient;
 * - `provider`: it refuses every message now (wrong login, rate limit, its own fault), or did not confirm
 *   this one;
 * - `connection`: it cannot be reached.
 */
export type About = 'message' | 'provider' | 'connection'

/** A recipient that was refused for good at the hand-over, with the provider's code and words. */
export type Refused = {
  recipient: string
  code?: string | undefined
  text?: string | undefined
}

/** What a provider reports of a message, as core.record_receipts takes it, hence its names. */
export type Receipt = {
  message_id: string
  provider_event_id: string
  /** `sent`: it has the message, which proves a hand-over whose outcome was not known. */
  type: 'sent' | 'delivered' | 'deferred' | 'bounced' | 'complained' | 'failed' | 'opted_out'
  /** ISO 8601. */
  occurred_at: string
  /** A bare address in lower case. */
  recipient?: string
  code?: string
  text?: string
  /** Of a bounce: the mailbox does not exist. */
  is_hard?: boolean
}

/** A callback whose signature is right. */
export type Callback = {
  /** What makes its signature unique. */
  token: string
  /** When it was signed, in Unix seconds. */
  signedAt: number
  /** null for an event that means nothing to us. */
  receipt: Receipt | null
}

/** Of a domain's three DKIM keys one signs, one is published to sign next, one has signed until lately. */
export type DkimKey = {
  /** The selector's label. */
  selector: string
  state: 'active' | 'next' | 'retired'
  /** The TXT value to publish. */
  value: string
  /** Sealed with SECRET_KEY; null when the provider keeps it. */
  private_key: string | null
}

/** What a domain's holder must publish for a provider, beside the DKIM CNAMEs. */
export type Identity = {
  keys: DkimKey[]
  mail_from_mx: { priority: number; host: string }
  /** The TXT value. */
  mail_from_spf: string
}

/** Who signs from now on, who has until now, and whose key is to be made anew: selectors. */
export type Rotation = { activate: string; retire: string; renew: string }

/** The provider cannot be reached, or not now: nothing is known to have changed there. */
export class ProviderUnavailable extends Error {}

/** The provider takes no such domain, for the reason in its message. */
export class DomainRefused extends Error {}

/**
 * Takes emails off our hands. What is said of domains throws ProviderUnavailable, also where nobody
 * knows what happened: each of them may be repeated until it succeeds.
 */
export type EmailProvider = {
  name: string
  /** Where it makes the identities of domains; with another one they are all to be made anew. */
  account: string
  /** Whether emails are signed here, with keys that we hold: none may leave without its key. */
  signsHere: boolean
  /** How long a hand-over may be unknown to `lookup` although it arrived. */
  settlesWithinMs: number
  /** Hand an email over. Whatever it throws counts as ambiguous. */
  send(email: OutgoingEmail): Promise<SendResult>
  /** Whether an earlier hand-over of this email arrived; asked after an ambiguous one. */
  lookup(email: OutgoingEmail): Promise<boolean>
  /**
   * Make the sending identity, or pick up the one that is there. Of these selectors the first gets
   * the active key, the second the next one. Throws DomainRefused.
   */
  createDomain(domain: { name: string; mailFrom: string; selectors: string[] }): Promise<Identity>
  /**
   * Whether it may send; `unknown` when the provider has no such domain. Sees to it that the key of
   * `selector`, the active one, is what signs.
   */
  checkDomain(name: string, selector?: string): Promise<'active' | 'unverified' | 'unknown'>
  /** Remove the sending identity; one that is not there is removed already. */
  deleteDomain(name: string): Promise<void>
  /** Carry out a rotation, or what is left of one; answers the new key of `renew`. */
  rotateDkim(name: string, rotation: Rotation): Promise<DkimKey>
  /** Let the provider send to an address again from this domain, which it may refuse by itself. */
  removeSuppression(domain: string, address: string): Promise<void>
  /** What it knows by now of a message that it took; asked of those only that make callbacks. */
  receiptsOf(email: SentEmail): Promise<Receipt[]>
  /** Read a callback's body; undefined when it is forged or makes no sense. null: it makes none. */
  readCallback: ((body: string) => Callback | undefined) | null
  /** What is wrong with its settings or its far end, in one line with the cure; null when all is well. */
  examine(): Promise<string | null>
  close(): Promise<void>
}
