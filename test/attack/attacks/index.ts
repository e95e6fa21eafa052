import type { Attack } from '../attack.ts'
import { domainChecks } from './domain-checks.ts'
import { gzipBatches } from './gzip-batches.ts'
import { gzipSingles } from './gzip-singles.ts'
import { halfSentBodies } from './half-sent-bodies.ts'
import { hardNames } from './hard-names.ts'
import { idleConnections } from './idle-connections.ts'
import { inventedKeys } from './invented-keys.ts'
import { largeEmails } from './large-emails.ts'
import { manyKeys } from './many-keys.ts'
import { nestedBrackets } from './nested-brackets.ts'
import { pipelinedRequests } from './pipelined-requests.ts'
import { refusals } from './refusals.ts'
import { slowSandbox } from './slow-sandbox.ts'
import { storage } from './storage.ts'
import { suppressionDeletes } from './suppression-deletes.ts'
import { suppressionSearch } from './suppression-search.ts'
import { suspended } from './suspended.ts'
import { template } from './template.ts'
import { unreadBodies } from './unread-bodies.ts'
import { unreadOverRate } from './unread-over-rate.ts'
import { unusualNames } from './unusual-names.ts'
import { unverifiedBatches } from './unverified-batches.ts'

/** Grouped by what they exhaust. */
export const attacks: Attack[] = [
  gzipBatches,
  gzipSingles,
  unverifiedBatches,
  nestedBrackets,
  manyKeys,
  hardNames,
  unusualNames,
  storage,
  template,
  suppressionSearch,
  suppressionDeletes,
  domainChecks,
  slowSandbox,
  largeEmails,
  refusals,
  suspended,
  halfSentBodies,
  idleConnections,
  unreadBodies,
  unreadOverRate,
  inventedKeys,
  pipelinedRequests,
]
