import type { Api } from './api.gen.ts'
import { type Call, caller } from './call.ts'
import { pairCaller } from './call-pair.ts'
import type { ClientOptions } from './client.ts'
import { type FairOptions, fairCall } from './fair-call.ts'
import { createPool, type PoolOptions } from './pool.ts'
import { CLIENT_TIME_LIMIT, repeatedCall } from './repeated-call.ts'

/** The connections of a process, a pool for each kind of call, so that no kind waits for another. */
export type Pools = ReturnType<typeof createPools>

/** Functions that every send needs; they have a pool to themselves. Each has two runs at a time (db/batcher). */
const INTAKE: ReadonlySet<keyof Api> = new Set(['admit', 'accept_emails', 'accept_sms'])
const INTAKE_SIZE = 6

/** Functions that repeatedCall() may call again. */
const REPEATABLE: ReadonlySet<keyof Api> = new Set([
  ...INTAKE,
  'add_suppression',
  'get_domain',
  'get_message',
  'get_usage',
  'list_domains',
  'list_suppressions',
  'organisation_name',
  'receive_callbacks',
  'unsubscribe',
])

const REQUESTS_SIZE = 4
/** Half of the connections for other requests, so that the other half remains for other organisations. */
const ONE_ORGANISATION: FairOptions = {
  atOnce: 2,
  waiting: 100,
  lineOf: (_name, args) => (args as { organisation_id?: string }).organisation_id,
  subject: 'This organisation',
}

const SIGN_IN_CALLS: ReadonlySet<string> = new Set<keyof Api>([
  'request_sign_in',
  'is_sign_in_link',
  'sign_in',
  'sign_out',
])

/** Strangers who request links do not hold up the pages of users who are signed in. */
const SIGN_IN: FairOptions = {
  atOnce: 1,
  waiting: 100,
  lineOf: (name) => (SIGN_IN_CALLS.has(name) ? 'sign-in' : undefined),
  subject: 'The sign-in',
}

/** The dashboard has no more than one organisation, so that pages do not hold up the API. */
const DASHBOARD: FairOptions = {
  atOnce: 2,
  waiting: 100,
  lineOf: (name) => (name.startsWith('dashboard_') ? 'dashboard' : undefined),
  subject: 'The dashboard',
}

/** An import or a search of one browser leaves the other place of the dashboard to others. */
const ONE_SESSION: FairOptions = {
  atOnce: 1,
  waiting: 20,
  lineOf: (name, args) =>
    name.startsWith('dashboard_') ? (args as { session?: string }).session : undefined,
  subject: 'This session',
}

const WORK_SIZE = 5
const CLOCK_SIZE = 3

/** How long jobs and scheduled tasks wait for a connection. Both run again when they fail. */
const WORK_WAITS_MS = 5000
const PROBE_WAITS_MS = 1000

/** If the database has not responded to a heartbeat by then, it is repeated on a new connection. */
const HEARTBEAT_WORK_MS = 10_000

/**
 * In seconds. A request gets its response within 10 s. Its lock_timeout is shorter than its statement_timeout, so
 * that in a batch of accepts only those fail whose organisation is locked.
 */
const requestLimits = { statement: 8, lock: 3 }
const workLimits = { statement: 30, lock: 30 }
const clockLimits = { statement: 600, lock: 60 }
const heartbeatLimits = { statement: 8, lock: 8 }

/**
 * Only superusers, and roles that one has granted it, may set temp_file_limit. migrate grants it to the
 * service's role where it can, and ops.checks reports where the limit is missing.
 */
const LIMIT_TEMP_FILES = `select set_config('temp_file_limit', '512MB', false)
  where has_parameter_privilege('temp_file_limit', 'set')`

/** A call takes two statements if migrate replaces the code meanwhile (call.ts). */
const STATEMENTS_PER_CALL = 2

type PoolsOptions = Pick<ClientOptions, 'role' | 'clock'> & {
  /** Called with each error of a call, and when an idle connection was lost. */
  onError?: (error: unknown) => void
  /** The same for the heartbeat's connection. */
  onHeartbeatError?: (error: unknown) => void
}

/** Creates the pools of a process; a pool connects when it gets work. */
export function createPools(url: string, poolsOptions: PoolsOptions) {
  const { onError, onHeartbeatError, ...client } = poolsOptions
  const pool = (
    size: number,
    { statement, lock }: typeof requestLimits,
    waitMs: number,
    options: Partial<PoolOptions> = {},
  ) =>
    createPool(url, {
      ...client,
      ...(onError && { onError }),
      size,
      waitMs,
      workMs: STATEMENTS_PER_CALL * statement * 1000,
      settings: {
        statement_timeout: `${statement}s`,
        lock_timeout: `${lock}s`,
        idle_in_transaction_session_timeout: '10s',
      },
      onOpen: LIMIT_TEMP_FILES,
      ...options,
    })
  const all = {
    intake: pool(INTAKE_SIZE, requestLimits, CLIENT_TIME_LIMIT.beginsWithinMs),
    requests: pool(REQUESTS_SIZE, requestLimits, CLIENT_TIME_LIMIT.beginsWithinMs),
    work: pool(WORK_SIZE, workLimits, WORK_WAITS_MS),
    clock: pool(CLOCK_SIZE, clockLimits, WORK_WAITS_MS),
  }
  const heartbeatPool = pool(1, heartbeatLimits, WORK_WAITS_MS, {
    isKept: true,
    applicationName: 'postgram heartbeat',
    workMs: HEARTBEAT_WORK_MS,
    ...(onHeartbeatError && { onError: onHeartbeatError }),
  })
  const intake = repeatedCall(caller(all.intake), REPEATABLE)
  const others = [ONE_ORGANISATION, SIGN_IN, DASHBOARD, ONE_SESSION].reduce(
    fairCall,
    repeatedCall(caller(all.requests), REPEATABLE),
  )
  const requests: Call = (name, args) => (INTAKE.has(name) ? intake : others)(name, args)
  const work = caller(all.work)
  const probe: Call = (name, args) => work(name, args, { waitMs: PROBE_WAITS_MS })
  return {
    /** For HTTP requests: admission and accepts have connections of their own. */
    requests,
    /** For accepts with the admission of their keys. */
    intakePair: pairCaller(all.intake),
    /** For jobs, and for what networks and providers report. */
    work,
    /** For scheduled tasks, which may take minutes. */
    clock: caller(all.clock),
    /** For heartbeats, on one connection that is never replaced: it holds the advisory locks of this process. */
    heartbeat: caller(heartbeatPool),
    /** The pool of that connection. */
    heartbeatPool,
    /** For health checks: fails at once while there is no connection. */
    probe,
    /** For reading the catalog. */
    use: all.work.use,
    /** The pools by name, except that of the heartbeat. */
    all,
    /** Drops the connections of these pools that were opened before this time; the heartbeat has its own limit. */
    dropOpenedBefore(time: number) {
      for (const pool of Object.values(all)) pool.dropOpenedBefore(time)
    },
    async end(timeoutMs: number) {
      await Promise.all([...Object.values(all), heartbeatPool].map((pool) => pool.end(timeoutMs)))
    },
  }
}
