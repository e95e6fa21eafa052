import { Refusal } from '../errors.ts'
import { ProviderUnavailable } from '../providers/email.ts'
import { only, runExclusively } from './exclusive.ts'
import { type DomainServices, makeIdentity, releaseName } from './identity.ts'
import { inspectDomain } from './inspect.ts'
import { createDomainJobs } from './jobs.ts'

/** The caller of a request, with the Idempotency-Key, if any, under which the response is stored. */
type Caller = { organisation_id: string; mode: string; fingerprint: string; key?: string }

/** The user of the dashboard who asked for it, whom the audit names; absent for a call of the API. */
type Asker = { actor?: string }

/** Sending domains, whose state follows from the provider, public DNS and the database. */
export type Registry = ReturnType<typeof createRegistry>

/** Adds to the jobs the requests that ask the provider. Each of these throws a Refusal. */
export function createRegistry(services: DomainServices) {
  const { call, provider, mailFromLabel } = services

  return {
    ...createDomainJobs(services),
    /** POST /v1/domains. */
    add: (caller: Caller, name: string, asker?: Asker) =>
      runExclusively({
        async begin(again) {
          const args = { ...caller, ...again, name, mail_from_label: mailFromLabel }
          const work = only(await call('begin_domain', args))
          if (work.verdict === 'held') throw new Refusal('already_exists')
          if (work.verdict === 'release') await releaseName(services, work)
          return work
        },
        async carryOut(work) {
          const { records, identity } = await makeIdentity(services, work)
          return call('finish_domain', {
            ...caller,
            ...asker,
            id: work.id,
            records: JSON.stringify(records),
            identity,
          })
        },
        abandon: ({ id }) => call('abandon_domain', { ...withoutFingerprint(caller), id }),
        isRepeatable: true,
      }),

    /** POST /v1/domains/{id}/verify. */
    verify: (caller: Caller, id: string, asker?: Asker) =>
      runExclusively({
        begin: async (again) => only(await call('begin_check', { ...caller, ...again, id })),
        async carryOut(work) {
          const { organisation_id: _, ...rest } = caller
          const result = await inspectDomain(services, work)
          return call('finish_check', { ...rest, ...asker, ...result })
        },
        abandon: (work) => call('abandon_check', { ...withoutFingerprint(caller), id: work.id }),
        isRepeatable: true,
      }),

    /** DELETE /v1/domains/{id}. */
    remove: (organisationId: string, id: string, asker?: Asker) =>
      runExclusively({
        begin: async (again) =>
          only(await call('begin_removal', { organisation_id: organisationId, ...again, id })),
        async carryOut(work) {
          // A manually verified domain may exist at the provider for other reasons, and then stays there.
          if (work.provider === provider.account) await provider.deleteDomain(work.name)
          // The reservation may have lapsed meanwhile, and a check may have made the domain again.
          const removed = await call('end_removal', { ...asker, id: work.id, is_removed: true })
          if (removed === 0) throw new ProviderUnavailable('the removal took too long')
          return [{ status: 200, body: JSON.stringify({ id, deleted: true }), replayed: false }]
        },
        abandon: (work) => call('end_removal', { id: work.id, is_removed: false }),
        isRepeatable: false,
      }),
  }
}

function withoutFingerprint({ fingerprint: _, ...caller }: Caller): Omit<Caller, 'fingerprint'> {
  return caller
}
