import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { addressProblem, readAddress } from '../../src/db/address.ts'

const folder = await mkdtemp(join(tmpdir(), 'postgram-address-'))
t.teardown(() => rm(folder, { recursive: true }))
const root = join(folder, 'root.pem')
await writeFile(root, 'a certificate')

/** Returns which servers the TLS options accept, in one word. */
function trustOf(url: string): string {
  const { tls } = readAddress(url)
  if (tls === false) return 'disable'
  if (tls.rejectUnauthorized === false) return 'require'
  const certificate = { subject: { CN: 'other' }, subjectaltname: 'DNS:other' }
  const problem = tls.checkServerIdentity?.('localhost', certificate as never)
  return problem ? 'verify-full' : 'verify-ca'
}

t.test('an address without sslmode verifies a remote server, and no other', async (t) => {
  for (const host of [
    'db',
    'db.example',
    '10.0.0.5',
    '[2001:db8::1]',
    'a,127.0.0.1',
    '127.0.0.1,a',
  ]) {
    t.equal(trustOf(`postgres://me:x@${host}/postgram`), 'verify-full', host)
  }
  const here = ['127.0.0.1', '127.1.2.3:5433', '[::1]', 'localhost', 'LOCALHOST', '', '%2Frun%2Fpg']
  for (const host of here) t.equal(trustOf(`postgres://${host}/postgram`), 'disable', host)
  t.equal(trustOf('postgres:///postgram?host=/run/postgresql'), 'disable')
  t.equal(trustOf('postgres:///postgram?host=db.example'), 'verify-full')
})

t.test('readAddress: applies sslmode to local and remote servers', async (t) => {
  for (const host of ['127.0.0.1', 'db.example']) {
    const at = `postgres://me@${host}/postgram?sslmode=`
    for (const mode of ['disable', 'require', 'verify-full']) t.equal(trustOf(at + mode), mode)
    t.equal(trustOf(`${at}verify-ca&sslrootcert=${root}`), 'verify-ca')
    t.equal(trustOf(`${at}require&sslrootcert=${root}`), 'verify-ca', 'as libpq has it')
    t.equal(trustOf(`${at}verify-full&sslrootcert=${root}`), 'verify-full')
    t.equal(trustOf(`${at}require&sslrootcert=system`), 'verify-full', 'anyone has a certificate')
  }
  t.equal(trustOf(`postgres://localhost/postgram?sslrootcert=${root}`), 'verify-full')
})

t.test('readAddress: reads certificate files, and names a missing one', async (t) => {
  const at = `postgres://db/postgram?sslrootcert=${root}&sslcert=${root}&sslkey=${root}`
  const text = 'a certificate'
  t.match(readAddress(at).tls, { ca: text, cert: text, key: text })
  t.throws(() => readAddress(`postgres://db/postgram?sslrootcert=${folder}/none`), {
    name: 'Error',
    message: `sslrootcert ${folder}/none cannot be read (ENOENT)`,
  })
})

t.test('verify-full: accepts each of several hosts, by name or IP address', async (t) => {
  const { tls } = readAddress('postgres://10.0.0.5,b.example/postgram')
  const check = (subjectaltname: string) =>
    tls === false
      ? 'no TLS'
      : tls.checkServerIdentity?.('localhost', { subject: {}, subjectaltname } as never)
  t.equal(check('IP Address:10.0.0.5'), undefined)
  t.equal(check('DNS:b.example'), undefined)
  t.ok(check('DNS:localhost'))
  t.ok(check('IP Address:10.0.0.6'))
})

t.test('readAddress: returns the address in the forms of both drivers', async (t) => {
  const six = readAddress(
    'postgres://me%40x:p%2Fw@[::1]:5433/db?sslmode=require&options=-c%20jit%3Don',
  )
  t.match(six, { user: 'me@x', password: 'p/w', hosts: ['::1'], ports: [5433] })
  t.equal(six.url, 'postgres://me%40x:p%2Fw@[::1]:5433/db?options=-c+jit%3Don')
  t.equal(six.pgUrl, six.url)
  const socket = readAddress('postgres:///db?host=/run/postgresql')
  t.match(socket, { hosts: ['/run/postgresql'], ports: [5432], url: 'postgres:///db' })
  t.equal(socket.pgUrl, 'postgres:///db?host=%2Frun%2Fpostgresql')
  const nowhere = readAddress('postgres:///db')
  t.match(nowhere, { hosts: ['localhost'], pgUrl: 'postgres:///db?host=localhost' })
})

t.test('readAddress: returns the parameters of libpq', async (t) => {
  t.same(
    readAddress('postgres://me%40x:p%2Fw@a,[::1]:5433/db?sslmode=require&options=-c%20jit%3Don')
      .libpq,
    {
      host: 'a,::1',
      port: '5432,5433',
      dbname: 'db',
      user: 'me@x',
      password: 'p/w',
      sslmode: 'require',
      options: '-c jit=on',
    },
  )
  t.same(readAddress('postgres:///?host=/run/pg&user=me').libpq, {
    host: '/run/pg',
    port: '5432',
    dbname: 'me',
    user: 'me',
  })
})

t.test('readAddress: reads several hosts in every form of libpq', async (t) => {
  const both = { hosts: ['a', 'b'], ports: [5432, 5433], target: 'read-write' }
  t.match(readAddress('postgres://me@a,b:5433/db'), both)
  t.match(readAddress('postgres:///db?host=a,b&port=5432,5433'), both)
  t.match(readAddress('postgres:///db?host=a,b&port=6000'), { ports: [6000, 6000] })
  t.match(readAddress('postgres://a:5433,b/db'), { ports: [5433, 5432] })
  t.match(readAddress('postgres://[::1]:5433,10.0.0.5/db'), { hosts: ['::1', '10.0.0.5'] })
  t.equal(readAddress('postgres://me@a,b:5433/db?x=y').pgUrl, 'postgres://me@a/db?x=y')
  for (const [url, target] of [
    ['postgres://a/db', null],
    ['postgres://a/db?target_session_attrs=any', null],
    ['postgres://a/db?target_session_attrs=read-write', 'read-write'],
    ['postgres://a,b/db', 'read-write'],
    ['postgres://a,b/db?target_session_attrs=primary', 'primary'],
  ] as const) {
    t.equal(readAddress(url).target, target, url)
    t.notMatch(readAddress(url).url, /target_session_attrs/)
  }
})

t.test('addressProblem: refuses unsupported addresses without quoting them', async (t) => {
  const target =
    'target_session_attrs must be read-write or primary: Postgram writes to its database'
  const modes = 'sslmode must be one of disable, require, verify-ca, verify-full'
  for (const [parameters, problem] of [
    ['sslmode=prefer', modes],
    ['sslmode=allow', modes],
    ['sslmode=no-verify', modes],
    ['sslmode=', modes],
    ['ssl=true', 'takes sslmode, not ssl'],
    ['sslmode=verify-ca', 'sslmode=verify-ca needs sslrootcert'],
    ['target_session_attrs=writable', target],
    ['target_session_attrs=read-only', target],
    ['target_session_attrs=prefer-standby', target],
    ['host=a,b,c&port=1,2', 'port must be one port, or one for each host'],
    ['port=0', 'takes ports from 1 to 65535'],
    ['port=http', 'takes ports from 1 to 65535'],
  ] as const) {
    t.equal(addressProblem(`postgres://me:hunter2@db/postgram?${parameters}`), problem, parameters)
  }
  t.equal(addressProblem('postgres://a,b/db?target_session_attrs=any'), target)
  t.equal(addressProblem('postgres://a,b:99999/db'), 'takes ports from 1 to 65535')
  const malformed = 'must be a postgres:// URL; write special characters in it as %XX'
  for (const hosts of ['a,b:x', 'a,b:1:2', 'a,::1', 'a,[::1', 'a,b:5432,:x']) {
    t.equal(addressProblem(`postgres://${hosts}/db`), malformed, hosts)
  }
})
