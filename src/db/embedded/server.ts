/** The server of an embedded cluster: starting, finding and stopping it. */
import { randomInt } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { SetupError } from '../../errors.ts'
import { succeeds, within } from '../attempt.ts'
import { readOr } from '../kept-file.ts'
import { ps, run } from '../run.ts'
import { findBinaries, serverUser, useYourOwn } from './binaries.ts'
import { type Cluster, initialise } from './data.ts'

export type Server = { pid: number; port: number }

/** How long a server that another process starts or stops is waited for. */
export const patienceMs = 60_000
const recoverySeconds = 600
/** Within 10 s in all: after an immediate shutdown, Postgres kills what remains of itself after 5 s. */
const shutdownMs = { SIGINT: 4_000, SIGQUIT: 5_500 }

/** Starts the server of a cluster, whose data it makes at the first start. */
export const startServer = async (cluster: Cluster, postgresFlags: string[]): Promise<void> => {
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
      return
    }
    if (!outcome) break
  }
  const reason = (await readOr(log, '')).split('\n').findLast((line) => line.includes('FATAL:'))
  throw new SetupError(`Postgres does not start (${reason}), see ${log}: mend that, ${useYourOwn}`)
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A fast, then an immediate shutdown; returns once the server is gone. */
export const stopServer = async (data: string): Promise<void> => {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    const server = await findServer(data)
    try {
      if (server) process.kill(server.pid, signal)
    } catch {
      // It went away meanwhile.
    }
    if (await within(shutdownMs[signal], async () => !(await findServer(data)))) return
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

/** The server that postmaster.pid names, if that process lives and is a server of this data. */
export const findServer = async (data: string): Promise<Server | undefined> => {
  const lines = (await readOr(`${data}/postmaster.pid`, '')).split('\n')
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  if (!pid) return undefined
  const isLinux = process.platform === 'linux'
  const command = isLinux ? await readOr(`/proc/${pid}/cmdline`, '') : await ps(pid, 'command=')
  const mark = ` -D ${await fs.realpath(data)} -p `
  return command.replaceAll('\0', ' ').includes(mark) ? { pid, port } : undefined
}
