import type { Attack } from '../attack.ts'
import {
  gzipBatches,
  gzipSingles,
  hardNames,
  manyKeys,
  nestedBrackets,
  unreadBodies,
  unreadOverRate,
  unusualNames,
} from './bodies.ts'
import { halfSentBodies, idleConnections, pipelinedRequests } from './connections.ts'
import { largeEmails, slowSandbox, storage, template, unverifiedBatches } from './messages.ts'
import {
  domainChecks,
  inventedKeys,
  refusals,
  suppressionDeletes,
  suppressionSearch,
  suspended,
} from './requests.ts'

/** All attacks, in the order in which they run. */
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
