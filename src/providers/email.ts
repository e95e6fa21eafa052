import type {
  DkimKey,
  EmailToSend,
  Receipt as ReceiptRecord,
  RefusedRecipient,
  SentEmail,
} from '../db/api.gen.ts'

/**
 * An email as a provider receives it. A marketing email to several recipients is sent as one copy for
 * each: `copy` is the number of the copy, from 1. It is null for an email that is sent as a whole.
 */
export type OutgoingEmail = EmailToSend & { copy: number | null }

/**
 * The result of one call to a provider:
 * - `sent`: the provider took the message;
 * - `failed`: it refused the message permanently;
 * - `deferred`: it did not take the message, and a later attempt may succeed;
 * - `ambiguous`: it may or may not have the message, for example after a timeout.
 */
export type SendResult = {
  outcome: 'sent' | 'failed' | 'deferred' | 'ambiguous'
  /** If deferred: when to retry, if the provider says so. */
  retry_in_ms?: number
  /** What the failure concerns; absent if the provider was not asked to take the message. */
  about?: About
  /** The code and text that the provider gave. */
  code?: string
  text?: string
  /** If an email was sent: the recipients that the provider refused, in lower case. */
  refused?: RefusedRecipient[]
}

/**
 * What a failure concerns. It decides whether the failure counts for the provider's health:
 * - `message`: the provider works and refuses this message, its sender or its recipient;
 * - `provider`: it refuses every message now (wrong login, rate limit, internal error), or did not
 *   confirm this one;
 * - `connection`: it cannot be reached.
 */
export type About = 'message' | 'provider' | 'connection'

/** A delivery receipt, of a type that email providers report. `sent` settles an ambiguous attempt. */
export type Receipt = ReceiptRecord & {
  type: 'sent' | 'delivered' | 'deferred' | 'bounced' | 'complained' | 'failed' | 'opted_out'
}

/** A callback with a valid signature. */
export type Callback = {
  /** Makes the signature unique. */
  token: string
  /** When it was signed, in Unix seconds. */
  signedAt: number
  /** null: Postgram ignores events of this type. */
  receipt: Receipt | null
}

/** What a domain must publish for a provider, beside the DKIM CNAME records. */
export type Identity = {
  keys: DkimKey[]
  mail_from_mx: { priority: number; host: string }
  /** The TXT value. */
  mail_from_spf: string
}

/** A rotation of DKIM keys, by selector: which key signs from now on, which stops, which gets a new key. */
export type Rotation = { activate: string; retire: string; renew: string }

/** The provider cannot be reached or cannot respond now. Whether it changed anything is unknown. */
export class ProviderUnavailable extends Error {}

/** The provider refuses this domain; the message says why. */
export class DomainRefused extends Error {}

/**
 * Sends email and manages sending domains. The methods for domains throw ProviderUnavailable, also when
 * the outcome is unknown. Callers may repeat each of them until it succeeds.
 */
export type EmailProvider = {
  name: string
  /** Identifies the account that holds the identities of domains. After a change all are made again. */
  account: string
  /** Whether Postgram signs the emails with its keys. If so, no email is sent without a key. */
  signsHere: boolean
  /** How long `lookup` may not find an email that the provider took. */
  lookupDelayMs: number
  /** Sends an email. Any exception counts as ambiguous. */
  send(email: OutgoingEmail): Promise<SendResult>
  /** Whether the provider has this email; called after an ambiguous attempt. */
  lookup(email: OutgoingEmail): Promise<boolean>
  /**
   * Makes the sending identity, or returns the existing one. The first selector gets the active key,
   * the second the next one. Throws DomainRefused.
   */
  createDomain(domain: { name: string; mailFrom: string; selectors: string[] }): Promise<Identity>
  /**
   * Whether the domain may send; `unknown` if the provider does not have it. Activates the key of
   * `selector`, if it does not sign yet.
   */
  checkDomain(name: string, selector?: string): Promise<'active' | 'unverified' | 'unknown'>
  /** Removes the sending identity, if there is one. */
  deleteDomain(name: string): Promise<void>
  /** Carries out a rotation, or the remaining steps of one; returns the new key of `renew`. */
  rotateDkim(name: string, rotation: Rotation): Promise<DkimKey>
  /** Removes an address from the suppression lists that the provider keeps for this domain. */
  removeSuppression(domain: string, address: string): Promise<void>
  /** Returns all receipts of an email so far; called only for providers that make callbacks. */
  receiptsOf(email: SentEmail): Promise<Receipt[]>
  /** Reads the body of a callback; returns undefined if it is forged or malformed. null: no callbacks. */
  readCallback: ((body: string) => Callback | undefined) | null
  /** Returns null if settings and provider work; otherwise a hint: the problem and its fix in one line. */
  check(): Promise<string | null>
  close(): Promise<void>
}
