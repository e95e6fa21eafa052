import { setTimeout as pause } from 'node:timers/promises'
import type { Api, DomainWork, Reply } from '../db/api.gen.ts'
import type { Call } from '../db/call.ts'
import { ConnectionLost, Unreachable } from '../db/connection-errors.ts'
import { CLIENT_TIME_LIMIT } from '../db/repeated-call.ts'
import { Refusal } from '../errors.ts'
import {
  type DkimKey,
  DomainRefused,
  type EmailProvider,
  ProviderUnavailable,
  type Rotation,
} from '../providers/email.ts'
import { checkRecords } from './check-records.ts'
import { isPublished } from './is-published.ts'
import { type DnsRecord, recordsOf, SELECTORS } from './records.ts'
import type { Resolver } from './resolver.ts'

/** Who asks, and the Idempotency-Key, if there is one, under which the answer is kept. */
export type Asker = { organisation_id: string; mode: string; fingerprint: string; key?: string }

export type RegistryOptions = {
  call: Call
  provider: EmailProvider
  resolver: Resolver
  dkimZone: string
  mailFromLabel: string
}

export type Registry = {
  /** POST /v1/domains. Throws a Refusal. */
  add(asker: Asker, name: string): Promise<Reply>
  /** POST /v1/domains/{id}/verify. Throws a Refusal. */
  verify(asker: Asker, id: string): Promise<Reply>
  /** DELETE /v1/domains/{id}. Throws a Refusal. */
  remove(organisationId: string, id: string): Promise<Reply>
  /** The check that the clock asked for, by the domain's UUID. Throws ProviderUnavailable. */
  check(id: string): Promise<void>
  /** Make the identity, with its DKIM keys, of a verified domain that was never checked; nothing for others. */
  makeKey(name: string): Promise<void>
  /** Remove what the provider has of a name that an operator released. Throws ProviderUnavailable. */
  release(id: string): Promise<void>
  /**
   * Carry out a rotation of DKIM keys. Throws ProviderUnavailable, and an Error while the key that is
   * to sign is not in DNS: nobody would believe what it signed.
   */
  rotate(id: string, rotation: Rotation): Promise<void>
}

type Key = Pick<DkimKey, 'selector' | 'state' | 'value'>

const ASK_AGAIN_AFTER_MS = 100
/** Longer than the provider's slowest answers: what someone else began has ended by then. */
const ASK_AGAIN_FOR_MS = 60_000

/**
 * Sending domains: what is said of them by the provider, by public DNS and by us, brought together.
 * The provider is asked between two transactions, never within one: the first notes what is about to
 * happen and the second what did, so that a call that is cut off leaves nothing behind that the next
 * one, or the clock, does not put right.
 */
export function createRegistry(options: RegistryOptions): Registry {
  const { call, provider, resolver, dkimZone, mailFromLabel } = options

  /** Makes the sending identity at the provider, or picks up the one that is there. */
  async function identify({ name, mailFromLabel: label, token }: DomainWork) {
    const identity = await provider.createDomain({
      name,
      mailFrom: `${label}.${name}`,
      selectors: [...SELECTORS],
    })
    return {
      records: recordsOf({
        name,
        mailFromLabel: label,
        token,
        dkimZone,
        selectors: SELECTORS,
        identity,
      }),
      identity: { provider: provider.account, dkim_zone: dkimZone, keys: identity.keys },
    }
  }

  /** What the provider and DNS say of a domain now, as api.finish_check takes it. */
  async function look(work: DomainWork) {
    const known = (work.records ?? []) as DnsRecord[]
    const isMade = known.length > 0 && work.provider === provider.account
    const ask = (keys: Key[]) =>
      provider.checkDomain(work.name, keys.find(({ state }) => state === 'active')?.selector)
    const state = isMade ? await ask((work.keys ?? []) as Key[]) : 'unknown'
    // One that the provider has lost, or never had, is made there without its holder's help.
    const made = state === 'unknown' ? await identify(work) : undefined
    const keys = (made?.identity.keys ?? work.keys ?? []) as Key[]
    const isActive = (made ? await ask(keys) : state) === 'active'
    const expected = made ? made.records.map((record) => asFound(record, known)) : known
    const { records } = await checkRecords(expected, resolver, keys)
    return {
      id: work.id,
      is_active: isActive,
      records: JSON.stringify(records),
      ...(made ? { identity: made.identity } : {}),
    }
  }

  /** Removes the entry of a name whose claim lapsed, so that the next claim begins with a new one. */
  async function release(work: DomainWork) {
    try {
      if (work.provider === provider.account) await provider.deleteDomain(work.name)
    } catch (error) {
      await call('end_release', { id: work.id, is_removed: false }).catch(() => undefined)
      throw error
    }
    await call('end_release', { id: work.id, is_removed: true })
  }

  return {
    add: (asker, name) =>
      inTurn(
        async (again) => {
          const begin = { ...asker, ...again, name, mail_from_label: mailFromLabel }
          const work = only(await call('begin_domain', begin))
          if (work.verdict === 'held') throw new Refusal('already_exists')
          if (work.verdict === 'release') await release(work)
          return work
        },
        async (work) => {
          const { records, identity } = await identify(work)
          const made = {
            id: work.id,
            records: JSON.stringify(records),
            identity,
          }
          return call('finish_domain', { ...asker, ...made })
        },
        (work) => {
          const { fingerprint: _, ...holder } = asker
          return call('abandon_domain', { ...holder, id: work.id })
        },
        { isRepeatable: true },
      ),

    verify: (asker, id) =>
      inTurn(
        async (again) => only(await call('begin_check', { ...asker, ...again, id })),
        async (work) => {
          const { organisation_id: _, ...kept } = asker
          return call('finish_check', { ...kept, ...(await look(work)) })
        },
        (work) => {
          const { fingerprint: _, ...holder } = asker
          return call('abandon_check', { ...holder, id: work.id })
        },
        { isRepeatable: true },
      ),

    remove: (organisationId, id) =>
      inTurn(
        async (again) =>
          only(await call('begin_removal', { organisation_id: organisationId, ...again, id })),
        async (work) => {
          // One that an operator vouched for may be there for reasons of its own.
          if (work.provider === provider.account) await provider.deleteDomain(work.name)
          // It took so long that it was given up, and a check may have made it there anew.
          if ((await call('end_removal', { id: work.id, is_removed: true })) === 0) {
            throw new ProviderUnavailable('the removal took too long')
          }
          const body = JSON.stringify({ id, deleted: true })
          return [{ status: 200, body, replayed: false }]
        },
        (work) => call('end_removal', { id: work.id, is_removed: false }),
      ),

    async check(id) {
      const [work] = await call('domain_to_check', { id })
      if (!work) return
      const found = await look(work).catch((error) => {
        // It will not take this domain tomorrow either: that is an answer.
        if (error instanceof DomainRefused) return refused(work)
        throw error
      })
      await call('finish_check', found)
    },

    async makeKey(name) {
      const [work] = await call('domain_to_sign', { name })
      if (!work) return
      const { records, identity } = await identify(work)
      await call('store_signing_key', {
        id: work.id,
        identity,
        records: JSON.stringify(records),
      })
    },

    async release(id) {
      const [work] = await call('begin_release', { id })
      if (work) await release(work)
    },

    async rotate(id, rotation) {
      const [work] = await call('domain_to_check', { id })
      if (!work) return
      const host = `${rotation.activate}._domainkey.${work.name}`
      const key = ((work.keys ?? []) as Key[]).find(
        ({ selector }) => selector === rotation.activate,
      )
      const record = ((work.records ?? []) as DnsRecord[]).find(({ name }) => name === host)
      if (!key || !record || !(await isPublished(record, key.value, resolver))) {
        throw new Error(`the key of ${host} is not in DNS yet`)
      }
      const renewed = await provider.rotateDkim(work.name, rotation)
      const { activate, retire } = rotation
      await call('finish_rotation', { id, activate, retire, key: renewed })
    },
  }
}

/**
 * Begins once nobody else is at it, and carries out what is to be done, or abandons it. What fails in
 * between is put right by who comes next, so an abandonment that fails too is no harm. Begins again when
 * the connection to the database was lost, if that does nothing twice, so that the response is true.
 */
async function inTurn(
  begin: (again: { since?: Date }) => Promise<DomainWork>,
  carryOut: (work: DomainWork) => Promise<Reply[]>,
  abandon: (work: DomainWork) => Promise<Api['abandon_check']['result']>,
  { isRepeatable = false } = {},
): Promise<Reply> {
  const start = performance.now()
  let again: { since?: Date } = {}
  let lost: ConnectionLost | undefined
  for (;;) {
    let work: DomainWork | undefined
    try {
      work = await begin(again)
      if (work.verdict === 'answer') {
        return { status: work.status ?? 200, body: work.body ?? '', replayed: work.replayed }
      }
      if (work.verdict === 'work') return only(await carryOut(work))
    } catch (error) {
      if (work) await abandon(work).catch(() => undefined)
      if (isRepeatable && error instanceof ConnectionLost) lost = error
      else throw error instanceof Unreachable && lost ? lost : asRefusal(error)
    }
    const limitMs = lost ? CLIENT_TIME_LIMIT.beginsWithinMs : ASK_AGAIN_FOR_MS
    if (performance.now() - start > limitMs) {
      throw lost ?? new Refusal('email_provider_unavailable')
    }
    if (work?.since) again = { since: work.since }
    if (work?.verdict !== 'release') await pause(ASK_AGAIN_AFTER_MS)
  }
}

/** What is known of a domain that the provider does not take. */
function refused({ id, records }: DomainWork) {
  return { id, is_active: false, records: JSON.stringify(records ?? []) }
}

/** A record that is wanted now with what was found of the same one before. */
function asFound(record: DnsRecord, known: readonly DnsRecord[]): DnsRecord {
  const same = known.find(
    ({ type, name, value }) =>
      type === record.type && name === record.name && value === record.value,
  )
  return same ?? record
}

function only<Row>([row]: Row[]): Row {
  if (row === undefined) throw new Error('a function answered with no row')
  return row
}

function asRefusal(error: unknown): unknown {
  if (error instanceof ProviderUnavailable) return new Refusal('email_provider_unavailable')
  if (error instanceof DomainRefused) {
    return new Refusal('validation_error', { name: [error.message] })
  }
  return error
}
