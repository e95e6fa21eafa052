import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import postgres from 'postgres'
import { type Test, t as tap, test } from 'tap'
import { type Embedded, openEmbedded } from '../../../src/db/embedded/index.ts'
import { dataParent } from '../../fixtures/folders.ts'
import { killServer } from '../../fixtures/postgres.ts'
import { until } from '../../fixtures/time.ts'

const options = { postgresFlags: ['-c', 'fsync=off'] }
const notRoot = process.getuid?.() === 0 ? false : 'only root can start a server as another user'

const parent = await mkdtemp(join(dataParent, 'postgram-embedded-'))
// Under root, user postgres must be able to enter it.
await chmod(parent, 0o711)
tap.teardown(() => rm(parent, { recursive: true }))
// All tests use a name with characters that shells interpret.
const folder = join(parent, `da ta's "$HOME" \`id\` \\ é`)

const ask = async (url: string, query: string) => {
  const sql = postgres(url, { max: 1, connect_timeout: 5 })
  try {
    const [row] = await sql.unsafe(query)
    return row?.answer
  } finally {
    await sql.end()
  }
}

const serverPid = async (place = folder) =>
  Number.parseInt(await readFile(join(place, 'postgres/postmaster.pid'), 'utf8'), 10)

/** Waits for a process to end. */
const stopped = (pid: number) =>
  until('the server to stop', async () => {
    try {
      return !process.kill(pid, 0)
    } catch {
      return true
    }
  })

const open = async (t: Test) => {
  const embedded = await openEmbedded(folder, options)
  t.teardown(() => embedded.close())
  return embedded
}

const spawnElsewhere = (t: Test, place = folder) => {
  const program = `
    import { openEmbedded } from '${import.meta.resolve('../../../src/db/embedded/index.ts')}'
    const { url, close } = await openEmbedded(process.argv[1], ${JSON.stringify(options)})
    process.once('message', () => close().then(() => process.disconnect()))
    process.send({ url })`
  const args = ['--input-type=module', '--eval', program, place]
  // In a new process group, as in a terminal.
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  const end = async (signal?: NodeJS.Signals) => {
    if (signal) process.kill(-Number(child.pid), signal)
    else if (child.connected) child.send('close')
    await exited
  }
  t.teardown(() => end())
  return { child, exited, end }
}

const openElsewhere = async (t: Test, place = folder) => {
  const { child, exited, end } = spawnElsewhere(t, place)
  const [opened] = await Promise.race([once(child, 'message'), exited])
  return { ...(opened as Embedded), end }
}

test('processes that open a new folder at once share one server, which stops after the last of them', async (t) => {
  const all = await Promise.all([1, 2, 3].map(() => openElsewhere(t)))
  const [first, second, third] = all
  t.equal(new Set(all.map(({ url }) => url)).size, 1)
  const pid = await serverPid()
  await first?.end('SIGKILL')
  await second?.end()
  t.equal(await ask(String(third?.url), 'select 1 as answer'), 1)
  t.equal(await serverPid(), pid)
  await third?.end('SIGKILL')
  await stopped(pid)
})

test('the database is postgram, in UTF-8, in code point order, open to this machine only', async (t) => {
  const { url } = await open(t)
  t.equal(await ask(url, 'select current_database() as answer'), 'postgram')
  t.equal(await ask(url, "select current_setting('server_encoding') as answer"), 'UTF8')
  t.ok(await ask(url, "select 'Z' < 'a' and lower('É') = 'é' as answer"))
  t.equal(await ask(url, "select current_setting('listen_addresses') as answer"), '127.0.0.1')
  await t.rejects(ask(url.replace(/:[^:]*@/, ':wrong@'), 'select 1'), { code: '28P01' })
})

test('the password is readable by its owner only', async (t) => {
  t.equal((await stat(join(folder, 'postgres-password'))).mode & 0o777, 0o600)
})

test('a second process joins the server and leaves it running', async (t) => {
  const { url } = await open(t)
  const other = await openElsewhere(t)
  t.equal(other.url, url)
  await other.end()
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('the last user stops the server once, also if it closes several times', async (t) => {
  const { url, close } = await open(t)
  await Promise.all([close(), close()])
  await t.rejects(ask(url, 'select 1'), { code: 'ECONNREFUSED' })
  await t.rejects(serverPid(), { code: 'ENOENT' })
})

test('the server stops after the process group of its only user was killed, and starts again', async (t) => {
  const user = await openElsewhere(t)
  const pid = await serverPid()
  await user.end('SIGKILL')
  await stopped(pid)
  const { url } = await open(t)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('the server stops if the process that starts it is killed during the start', async (t) => {
  const { end } = spawnElsewhere(t)
  const pid = await until('the server to begin', () => serverPid().catch(() => 0))
  await end('SIGKILL')
  await stopped(pid)
})

test('a process that opens the folder when the last user is killed gets a running server', async (t) => {
  const user = await openElsewhere(t)
  const [, { url }] = await Promise.all([user.end('SIGKILL'), open(t)])
  // When the file of the killed user is gone, its watcher has either seen the other user or stopped the server.
  await until('one user', async () => (await readdir(join(folder, 'postgres-users'))).length === 1)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('data and address are the same after a restart', async (t) => {
  const before = await open(t)
  await ask(before.url, 'create table kept as select 42 as answer')
  await before.close()
  const after = await open(t)
  t.equal(after.url, before.url)
  t.equal(await ask(after.url, 'select answer from kept'), 42)
})

test('the server takes another port if another program uses the old one', async (t) => {
  const port = Number(await readFile(join(folder, 'postgres-port'), 'utf8'))
  const stranger = createServer().listen(port, '127.0.0.1')
  await once(stranger, 'listening')
  t.teardown(() => stranger.close())
  const { url } = await open(t)
  t.not(new URL(url).port, `${port}`)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('a start waits for the remaining processes of a killed server', async (t) => {
  const before = await open(t)
  const sql = postgres(before.url, { max: 1 })
  t.teardown(() => sql.end({ timeout: 0 }))
  const [busy] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  process.kill(Number(busy?.pid), 'SIGSTOP')
  await killServer(folder)
  await before.close()

  const log = join(folder, 'postgres/postgres.log')
  const opening = open(t)
  await until('a start in vain', async () => /is still in use/.test(await readFile(log, 'utf8')))
  process.kill(Number(busy?.pid), 'SIGCONT')
  const { url } = await opening
  t.equal(url, before.url)
  t.equal(await ask(url, 'select answer from kept'), 42)
})

test('the last user stops a server with a frozen process', async (t) => {
  const { url, close } = await open(t)
  const sql = postgres(url, { max: 1 })
  t.teardown(() => sql.end({ timeout: 0 }))
  const [busy] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  const pid = await serverPid()
  process.kill(Number(busy?.pid), 'SIGSTOP')
  // It rejects unless the server has stopped within its limit of 10 s.
  await close()
  await stopped(pid)
})

test('pid files of a crashed machine do not block a start, although other processes have their numbers', async (t) => {
  const owner = await stat(join(folder, 'postgres'))
  const stranger = spawn('sleep', ['60'], { uid: owner.uid, gid: owner.gid })
  t.teardown(() => stranger.kill())
  await writeFile(join(folder, 'postgres/postmaster.pid'), `${stranger.pid}\n${folder}\n1\n5432\n`)
  for (const file of ['postgres-owner', 'postgres-users/left']) {
    await writeFile(join(folder, file), `${stranger.pid} 1`)
  }
  const { url, close } = await open(t)
  t.equal(await ask(url, 'select 1 as answer'), 1)
  await close()
  await t.rejects(ask(url, 'select 1'), { code: 'ECONNREFUSED' })
})

test('a detached server runs until a process has opened and closed it without the option', async (t) => {
  const detached = await openEmbedded(folder, { ...options, detached: true })
  await detached.close()
  t.equal(await ask(detached.url, 'select 1 as answer'), 1)
  const { url, close } = await open(t)
  t.equal(url, detached.url)
  await close()
  await t.rejects(ask(url, 'select 1'), { code: 'ECONNREFUSED' })
})

test('a server that cannot start gives the reason and the fix, and releases the folder', async (t) => {
  await t.rejects(openEmbedded(folder, { postgresFlags: ['-c', 'fsync=perhaps'] }), {
    message: /"fsync" requires a Boolean value.*DATABASE_URL/,
  })
  t.equal(await ask((await open(t)).url, 'select 1 as answer'), 1)
})

test('a lost password is reported, and no server is left running', async (t) => {
  const file = join(folder, 'postgres-password')
  const password = await readFile(file, 'utf8')
  await writeFile(file, 'lost')
  await t.rejects(openEmbedded(folder, options), { message: /refuses its password/ })
  await t.rejects(serverPid(), { code: 'ENOENT' })
  await writeFile(file, password)
})

test('started by root, the server runs as another user', { skip: notRoot }, async (t) => {
  await open(t)
  const status = await readFile(`/proc/${await serverPid()}/status`, 'utf8')
  t.match(status, /^Uid:\t[1-9]/m)
})

test('root may use a data folder that no other user can enter', { skip: notRoot }, async (t) => {
  const closed = join(parent, 'closed')
  await mkdir(closed, { mode: 0o700 })
  const { url, close } = await openEmbedded(join(closed, 'data'), options)
  const data = await realpath(join(closed, 'data/postgres'))
  t.teardown(() => rm(dirname(data), { recursive: true }))
  t.teardown(close)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})
