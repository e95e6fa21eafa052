import { chmod, chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { serverUser } from '../../src/db/embedded/binaries.ts'
import { run } from '../../src/db/run.ts'
import { freePort, selfSigned } from '../fixtures/network.ts'
import { postgresPrograms, serverFolder } from '../fixtures/postgres.ts'
import { until } from '../fixtures/time.ts'
import { type Link, startLink } from './link.ts'
import { fileOfPage } from './pages.ts'
import {
  absentProgram,
  freezeTrees,
  killTrees,
  type Program,
  signalAll,
  startProgram,
} from './program.ts'

const CONFIG = '/etc/patroni/config.yml'

/** A server of Postgres with its Patroni. */
export type Member = Awaited<ReturnType<typeof createMember>>

export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** Responses of Patroni, as far as the tests read them. */
type ClusterStatus = { members: { name: string; role: string }[] }
type MemberStatus = { state: string; replication?: { state: string }[] }

/** Far above what a busy machine needs. */
const LIMIT_MS = 240_000
const RESPONSE_MS = 5000

/** Returns why tests that need Patroni are skipped, or false. */
export async function unusablePatroni(): Promise<string | false> {
  const absent = absentProgram('patroni', 'patronictl', 'etcd', 'haproxy', 'openssl')
  if (absent) return absent
  const { stdout } = await run('patroni', ['--version'])
  const [, ...numbers] = /(\d+)\.(\d+)\.(\d+)/.exec(stdout) ?? []
  const [major = 0, minor = 0, patch = 0] = numbers.map(Number)
  const isFixed = major > 3 || (major === 3 && (minor > 0 || patch >= 3))
  return !isFixed && `${stdout.trim()} loses commits when a frozen primary resumes: 3.0.3 is needed`
}

/** Starts etcd and three servers of Postgres under Patroni, as the page on failover sets them up. */
export async function startCluster() {
  const folder = await serverFolder()
  const certificate = join(folder, 'server.crt')
  await writeCertificate(folder)
  const etcd = await startEtcd(join(folder, 'etcd'))
  const members = await Promise.all(
    ['db1', 'db2', 'db3'].map((name) => createMember(name, folder, etcd)),
  )
  for (const member of members) await member.start()

  const memberOf = (name: string | undefined) => members.find((member) => member.name === name)

  /** Returns the roles of the members by their names, as etcd has them. */
  async function roles(): Promise<Record<string, string>> {
    for (const member of members) {
      const status = await member.ask<ClusterStatus>('/cluster').catch(() => null)
      if (status) return Object.fromEntries(status.members.map(({ name, role }) => [name, role]))
    }
    return {}
  }
  const nameOf = async (wanted: string) =>
    Object.entries(await roles()).find(([, role]) => role === wanted)?.[0]

  /** Returns the primary if all other members stream from it and Patroni may promote one of them. */
  async function complete(): Promise<Member | undefined> {
    const primary = memberOf(await nameOf('leader'))
    if (!primary || !(await nameOf('sync_standby'))) return
    const { state, replication = [] } = await primary.ask<MemberStatus>('/patroni')
    const streaming = replication.filter(({ state }) => state === 'streaming')
    return state === 'running' && streaming.length === members.length - 1 ? primary : undefined
  }

  return {
    folder,
    certificate,
    members,
    async untilComplete(): Promise<Member> {
      const look = () => complete().catch(() => undefined)
      return until('a primary with its standbys', look, LIMIT_MS).catch(async (error) => {
        const states = await Promise.all(members.map((member) => member.describe()))
        throw new Error([error.message, ...states].join('\n'))
      })
    },
    /** Waits until another member than `former` is the primary. */
    untilPromoted: (former: Member) =>
      until(
        'a promotion',
        async () => {
          for (const member of members) {
            if (member !== former && (await member.isPrimary())) return member
          }
          return
        },
        LIMIT_MS,
      ),
    async synchronousStandby(): Promise<Member> {
      const member = memberOf(await nameOf('sync_standby'))
      if (!member) throw new Error('there is no synchronous standby')
      return member
    },
    async switchover(from: Member, to: Member) {
      const args = ['-c', from.config, 'switchover', '--force']
      await run('patronictl', [...args, '--leader', from.name, '--candidate', to.name])
    },
  }
}

async function writeCertificate(folder: string) {
  const { cert, key } = selfSigned() ?? { cert: '', key: '' }
  await writeFile(join(folder, 'server.crt'), cert)
  await writeFile(join(folder, 'server.key'), key, { mode: 0o600 })
  const { uid = -1, gid = -1 } = await serverUser('')
  await chown(join(folder, 'server.key'), uid, gid)
  await chmod(join(folder, 'server.crt'), 0o644)
}

/** Starts etcd; returns the port for its clients. */
async function startEtcd(folder: string): Promise<number> {
  const [port, peerPort] = [await freePort(), await freePort()]
  const client = `http://127.0.0.1:${port}`
  const peer = `http://127.0.0.1:${peerPort}`
  await startProgram('etcd', [
    ...['--name', 'etcd1', '--data-dir', folder, '--log-level', 'warn'],
    ...['--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ...['--initial-cluster', `etcd1=${peer}`],
  ])
  await until('etcd', async () => (await fetch(`${client}/health`).catch(() => null))?.ok)
  return port
}

async function createMember(name: string, folder: string, etcd: number) {
  const [port, restPort] = [await freePort(), await freePort()]
  const links: Link[] = await Promise.all([etcd, port, restPort].map(startLink))
  const [toEtcd, toPostgres, toRest] = links as [Link, Link, Link]
  const own = join(folder, name)
  const data = join(own, 'data')
  const config = join(own, 'patroni.yml')
  const { uid = -1, gid = -1 } = await serverUser('')
  await mkdir(own)
  await chown(own, uid, gid)
  const text = fileOfPage(CONFIG, {
    'name: db1': `name: ${name}`,
    // Otherwise Patroni would ask etcd for its address, and leave the link.
    'hosts: etcd1.example.net:2379,etcd2.example.net:2379,etcd3.example.net:2379': `hosts: 127.0.0.1:${toEtcd.port}\n  use_proxies: true`,
    '*:8008': `127.0.0.1:${restPort}`,
    'db1.example.net:8008': `127.0.0.1:${toRest.port}`,
    '*:5432': `127.0.0.1:${port}`,
    'db1.example.net:5432': `127.0.0.1:${toPostgres.port}`,
    '/etc/postgresql/tls': folder,
    '/var/lib/postgresql/15/postgram': data,
    '/var/lib/postgresql/postgram.pgpass': join(own, 'pgpass'),
    '/var/run/postgresql': own,
    '/usr/lib/postgresql/15/bin': postgresPrograms,
  })
  await writeFile(config, text, { mode: 0o644 })
  let patroni: Program | undefined
  let frozen: number[] = []

  async function kill() {
    await killTrees(own)
    await patroni?.ended()
  }
  t.teardown(kill)

  /** Asks Patroni on this member's own address. */
  async function ask<Answer>(path: string): Promise<Answer> {
    const signal = AbortSignal.timeout(RESPONSE_MS)
    const response = await fetch(`http://127.0.0.1:${restPort}${path}`, { signal })
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    return (await response.json()) as Answer
  }

  return {
    name,
    config,
    port,
    restPort,
    ask,
    isPrimary: () =>
      ask('/primary').then(
        () => true,
        () => false,
      ),
    async start() {
      patroni = await startProgram('patroni', [config])
    },
    kill,
    /** Returns what Patroni says of this member, and what it did last. */
    async describe(): Promise<string> {
      const status = await ask('/patroni').then(JSON.stringify, String)
      return [`${name}: ${status}`, ...(patroni?.lastLines(12) ?? [])].join('\n')
    },
    /** Stops Patroni and Postgres in the middle of their work. */
    async freeze() {
      frozen = await freezeTrees(own)
    },
    thaw() {
      signalAll(frozen, 'SIGCONT')
    },
    /** Cuts the network to etcd and to the other members; clients still reach this one. */
    cutOff() {
      for (const link of links) link.cut()
    },
    reconnect() {
      for (const link of links) link.mend()
    },
  }
}
