import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import postgres from 'postgres'
import { type Test, t as tap, test } from 'tap'
import { type Embedded, openEmbedded } from '../../src/db/embedded.ts'
import { killServer } from '../fixtures/kill-server.ts'
import { until } from '../fixtures/until.ts'

const options = { postgresFlags: ['-c', 'fsync=off'] }
const notRoot = process.getuid?.() === 0 ? false : 'only root can start a server as another user'

const parent = await mkdtemp(join(tmpdir(), 'postgram-embedded-'))
// So that the user postgres may pass when root runs this.
await chmod(parent, 0o711)
tap.teardown(() => rm(parent, { recursive: true }))
// For all tests a name that shells would make something else of.
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

const open = async (t: Test) => {
  const embedded = await openEmbedded(folder, options)
  t.teardown(() => embedded.close())
  return embedded
}

const openElsewhere = async (t: Test, place = folder) => {
  const program = `
    import { openEmbedded } from '${import.meta.resolve('../../src/db/embedded.ts')}'
    const { url, isOwner, close } = await openEmbedded(process.argv[1], ${JSON.stringify(options)})
    process.once('message', () => close().then(() => process.disconnect()))
    process.send({ url, isOwner })`
  const args = ['--input-type=module', '--eval', program, place]
  // In a process group of its own, as in a terminal.
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
  const [opened] = await Promise.race([once(child, 'message'), exited])
  return { ...(opened as Embedded), end }
}

test('processes that open a new folder at once share one server with one owner', async (t) => {
  const all = await Promise.all([1, 2, 3].map(() => openElsewhere(t)))
  t.equal(new Set(all.map(({ url }) => url)).size, 1)
  t.same(all.map(({ isOwner }) => isOwner).sort(), [false, false, true])
  t.equal(await ask(String(all[0]?.url), 'select 1 as answer'), 1)
})

test('the database is postgram, in UTF-8, ordered by code point, open to this machine only', async (t) => {
  const { url, isOwner } = await open(t)
  t.ok(isOwner)
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
  t.notOk(other.isOwner)
  await other.end()
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('the owner stops the server, once, however often it closes', async (t) => {
  const { url, close } = await open(t)
  const pid = await serverPid()
  await Promise.all([close(), close()])
  await t.rejects(ask(url, 'select 1'), { code: 'ECONNREFUSED' })
  await t.rejects(serverPid(), { code: 'ENOENT' })
  t.ok(pid > 0)
})

test('the server outlives the killed process group of its owner, and is adopted', async (t) => {
  const owner = await openElsewhere(t)
  t.ok(owner.isOwner)
  const pid = await serverPid()
  await owner.end('SIGKILL')
  const { url, isOwner, close } = await open(t)
  t.ok(isOwner)
  t.equal(await serverPid(), pid)
  t.equal(await ask(url, 'select 1 as answer'), 1)
  await close()
  await t.rejects(ask(url, 'select 1'), { code: 'ECONNREFUSED' })
})

test('data and address outlive a restart', async (t) => {
  const before = await open(t)
  await ask(before.url, 'create table kept as select 42 as answer')
  await before.close()
  const after = await open(t)
  t.equal(after.url, before.url)
  t.equal(await ask(after.url, 'select answer from kept'), 42)
})

test('another port is taken when a stranger has the old one', async (t) => {
  const port = Number(await readFile(join(folder, 'postgres-port'), 'utf8'))
  const stranger = createServer().listen(port, '127.0.0.1')
  await once(stranger, 'listening')
  t.teardown(() => stranger.close())
  const { url } = await open(t)
  t.not(new URL(url).port, `${port}`)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('what is left of a killed server is waited for', async (t) => {
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
  const { url, isOwner } = await opening
  t.equal(url, before.url)
  t.ok(isOwner)
  t.equal(await ask(url, 'select answer from kept'), 42)
})

test('pid files of a crashed machine whose numbers others have now do not block a start', async (t) => {
  const owner = await stat(join(folder, 'postgres'))
  const stranger = spawn('sleep', ['60'], { uid: owner.uid, gid: owner.gid })
  t.teardown(() => stranger.kill())
  await writeFile(join(folder, 'postgres/postmaster.pid'), `${stranger.pid}\n${folder}\n1\n5432\n`)
  await writeFile(join(folder, 'postgres-owner'), `${stranger.pid} 1`)
  const { url, isOwner } = await open(t)
  t.ok(isOwner)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})

test('a detached server belongs to nobody until someone opens it without the option', async (t) => {
  const detached = await openEmbedded(folder, { ...options, detached: true })
  t.notOk(detached.isOwner)
  await detached.close()
  t.equal(await ask(detached.url, 'select 1 as answer'), 1)
  const { url, isOwner } = await open(t)
  t.equal(url, detached.url)
  t.ok(isOwner)
})

test('a server that cannot start says why, names the cure and lets go of the folder', async (t) => {
  await t.rejects(openEmbedded(folder, { postgresFlags: ['-c', 'fsync=perhaps'] }), {
    message: /"fsync" requires a Boolean value.*DATABASE_URL/,
  })
  t.ok((await open(t)).isOwner)
})

test('a lost password is told as such, and leaves no server running', async (t) => {
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

test('root may keep the data folder where nobody else can enter', { skip: notRoot }, async (t) => {
  const closed = join(parent, 'closed')
  await mkdir(closed, { mode: 0o700 })
  const { url, close } = await openEmbedded(join(closed, 'data'), options)
  const data = await realpath(join(closed, 'data/postgres'))
  t.teardown(() => rm(dirname(data), { recursive: true }))
  t.teardown(close)
  t.equal(await ask(url, 'select 1 as answer'), 1)
})
