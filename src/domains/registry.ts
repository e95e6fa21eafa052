import type { DomainServices } from './identity.ts'
import { createDomainJobs, type DomainJobs } from './jobs.ts'
import { createDomainRequests, type DomainRequests } from './requests.ts'

/** Sending domains, whose state follows from the provider, public DNS and the database. */
export type Registry = DomainRequests & DomainJobs

export function createRegistry(services: DomainServices): Registry {
  return { ...createDomainRequests(services), ...createDomainJobs(services) }
}
