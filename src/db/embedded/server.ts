/** Starts, finds and stops the server of an embedded cluster. */
import { randomInt } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { SetupError } from '../../errors.ts'
import { readOr } from '../kept-file.ts'
import { poll, succeeds } from '../poll.ts'
import { ps, run } from '../run.ts'
import { findBinaries, serverUser, useYourOwn } from './binaries.ts'
import { type Cluster, initialise } from './data.ts'

export type Server = { pid: number; port: number }

/** How long to wait for a server that another process starts or stops. */
export const serverWaitMs = 60_000
const recoverySeconds = 600
/** Within 10 s together: in an immediate shutdown, Postgres kills its remaining processes after 5 s. */
const shutdownMs = { SIGINT: 4_000, SIGQUIT: 5_500 }

/** Starts the server of a cluster, and creates its data at the first start. Throws SetupError. */
export const startServer = async (cluster: Cluster, postgresFlags: string[]): Promise<void> => {
  const { folder, data } = cluster
  const user = await serverUser(data)
  const binaries = await findBinaries(user)
  if (!(await succeeds(fs.lstat(data)))) await initialise(cluster, binaries, user)
  // After a crash, another process may have the pid of this file, and Postgres would take it for a server. Postgres
  // still checks the shared memory: if only the postmaster was killed, the start waits for its other processes.
  await fs.rm(`${data}/postmaster.pid`, { force: true })

  // The real path: the user may be unable to follow a link in the data folder.
  const place = await fs.realpath(data)
  const log = `${place}/postgres.log`
  // pg_ctl builds a shell command of these. Our quotes protect what follows -o. Its own quotes around the paths of
  // -D and -l do not protect $ and ", so these paths are relative, and the last -D overrides the first.
  const start = ['start', '-t', `${recoverySeconds}`, '-D', '.', '-l', 'postgres.log', '-o']
  const local = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
  // The last port first, so that the psql address stays. Then two others, as a port may be taken meanwhile.
  for (const wanted of [await readOr(`${folder}/postgres-port`, '0'), '0', '0']) {
    const port = await freePort(Number(wanted))
    const flags = ['-D', place, '-p', `${port}`, ...local, ...postgresFlags].map(quoted).join(' ')
    const outcome = await poll(serverWaitMs, async () => {
      const before = await readOr(log, '')
      const pgCtl = run(`${binaries}/pg_ctl`, [...start, flags], { ...user, cwd: place })
      if (await succeeds(pgCtl)) return 'started'
      return !(await readOr(log, '')).slice(before.length).includes('is still in use') && 'refused'
    })
    if (outcome === 'started') {
      await fs.writeFile(`${folder}/postgres-port`, `${port}`)
      return
    }
    if (!outcome) break
  }
  const reason = (await readOr(log, '')).split('\n').findLast((line) => line.includes('FATAL:'))
  throw new SetupError(`Postgres does not start (${reason}), see ${log}: fix that, ${useYourOwn}`)
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A fast, then an immediate shutdown; returns once the server is gone. */
export const stopServer = async (data: string): Promise<void> => {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    const server = await findServer(data)
    try {
      if (server) process.kill(server.pid, signal)
    } catch {
      // It has ended meanwhile.
    }
    if (await poll(shutdownMs[signal], async () => !(await findServer(data)))) return
  }
  throw new SetupError(`Postgres does not stop, see ${data}/postgres.log.`)
}

/** Returns the wanted port if it is free, else one below the range of ephemeral ports, so that it stays free. */
const freePort = (wanted: number): Promise<number> =>
  new Promise((settle) => {
    const server = createServer()
    server.once('error', () => settle(freePort(0)))
    server.listen(wanted || randomInt(20_000, 32_000), '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => settle(port))
    })
  })

/** Returns the server that postmaster.pid names, if that process runs and serves this data. */
export const findServer = async (data: string): Promise<Server | undefined> => {
  const lines = (await readOr(`${data}/postmaster.pid`, '')).split('\n')
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  if (!pid) return undefined
  const isLinux = process.platform === 'linux'
  const command = isLinux ? await readOr(`/proc/${pid}/cmdline`, '') : await ps(pid, 'command=')
  const mark = ` -D ${await fs.realpath(data)} -p `
  return command.replaceAll('\0', ' ').includes(mark) ? { pid, port } : undefined
}
