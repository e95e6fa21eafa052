import { spawn, spawnSync } from 'node:child_process'
import { Agent, type ClientRequest, type IncomingMessage, request as open } from 'node:http'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { type Answer, anEmail, isRefused, openRaw, post, postHead } from '../fixtures/http.ts'
import { createOrganisation, holdSecond, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { liveKey, domain } = organisation
await liftRate(sql, organisation)

const hasCurl = spawnSync('curl', ['--version']).status === 0

/** Posts bytes with exactly these headers; fetch would add a Content-Type. */
async function postBytes(
  path: string,
  body: Buffer | string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const request = open(base + path, {
    method: 'POST',
    agent: new Agent({ keepAlive: false }),
    headers: { Authorization: `Bearer ${liveKey}`, ...headers },
  })
  request.end(body)
  return responseTo(request)
}

async function responseTo(request: ClientRequest): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  const body = await text(response)
  return {
    status: response.statusCode ?? 0,
    headers: new Headers(response.headers as Record<string, string>),
    text: body,
    json: JSON.parse(body),
  }
}

t.test('a body is JSON whatever its content type says, and without one', async (t) => {
  const body = Buffer.from(JSON.stringify(anEmail(domain, { subject: 'Grüße 💌' })))
  const types = [
    'application/json',
    'application/json; charset=utf-8',
    'application/json; charset=UTF8',
    'application/json; charset="us-ascii"',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'multipart/form-data',
    'application/octet-stream',
    'application/vnd.acme+json',
    'image/png',
    'garbage',
    'a/b/c',
    ';',
    '*/*',
    '',
  ]
  for (const type of types) {
    const response = await postBytes('/v1/emails', body, { 'Content-Type': type })
    t.equal(response.status, 200, type)
  }
  const marked = await postBytes('/v1/emails', Buffer.concat([Buffer.from('\uFEFF'), body]))
  t.equal(marked.status, 200, 'a byte order mark is ignored')
  const untyped = await postBytes('/v1/emails', body)
  t.equal(untyped.status, 200, 'no content type')
  const [message] = await sql`
    select subject from app.messages where id = core.decode_id('em', ${untyped.json.id})`
  t.equal(message?.subject, 'Grüße 💌', 'and it is UTF-8')
})

t.test('a compressed body is decompressed', async (t) => {
  const body = JSON.stringify(anEmail(domain))
  for (const [encoding, bytes] of [
    ['gzip', gzipSync(body)],
    ['GZIP', gzipSync(body)],
    ['x-gzip', gzipSync(body)],
    ['X-GZip', gzipSync(body)],
    ['deflate', deflateSync(body)],
    ['br', brotliCompressSync(body)],
    ['identity', Buffer.from(body)],
  ] as const) {
    const response = await postBytes('/v1/emails', bytes, { 'Content-Encoding': encoding })
    t.equal(response.status, 200, encoding)
  }
})

t.test('a body that cannot be decompressed gets invalid_json, not internal_error', async (t) => {
  const before = await traces(sql)
  const body = JSON.stringify(anEmail(domain))
  const corrupt = 'The body cannot be decompressed by its Content-Encoding.'
  const unknown = 'The Content-Encoding must be gzip, deflate or br.'
  for (const [name, bytes, encoding, words] of [
    ['not gzip at all', Buffer.from(body), 'gzip', corrupt],
    ['gzip cut short', gzipSync(body).subarray(0, -12), 'gzip', corrupt],
    ['not brotli at all', Buffer.from(body), 'br', corrupt],
    ['an unknown encoding', Buffer.from(body), 'zstd-unknown', unknown],
    ['a name of every object', Buffer.from(body), 'constructor', unknown],
  ] as const) {
    const response = await postBytes('/v1/emails', bytes, { 'Content-Encoding': encoding })
    isRefused(t, response, 'invalid_json', undefined, { name, words })
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('a body that is not UTF-8, or whose charset is not, gets 400 invalid_json', async (t) => {
  const before = await traces(sql)
  const body = JSON.stringify(anEmail(domain, { subject: 'Grüße' }))
  const words = 'The body is not UTF-8.'
  for (const [name, bytes] of [
    ['latin1', Buffer.from(body, 'latin1')],
    ['UTF-16', Buffer.from(body, 'utf16le')],
    ['a surrogate in UTF-8', Buffer.from(body).fill(Buffer.from('eda080', 'hex'), 10, 13)],
    ['cut within a character', Buffer.from('{"subject":"Gr\u00fc').subarray(0, -1)],
    ['packed latin1', gzipSync(Buffer.from(body, 'latin1'))],
  ] as const) {
    const headers = name.startsWith('packed') ? { 'Content-Encoding': 'gzip' } : {}
    const response = await postBytes('/v1/emails', bytes, headers)
    isRefused(t, response, 'invalid_json', undefined, { name, words })
  }
  for (const charset of ['latin1', 'ISO-8859-1', '"windows-1252"', 'utf-16', 'utf-7']) {
    const type = `application/json; charset=${charset}`
    const response = await postBytes('/v1/emails', body, { 'Content-Type': type })
    isRefused(t, response, 'invalid_json', undefined, {
      name: type,
      words: `${words} Its charset must be utf-8.`,
    })
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('an empty body or one that is not JSON gets invalid_json', async (t) => {
  const before = await traces(sql)
  const bodies = {
    'no byte': '',
    'a space': ' ',
    'an open brace': '{',
    'a form': 'from=a&to=b',
    'two values': '{}{}',
    'a trailing comma': '{"a":1,}',
    'a comment': '{} // email',
    'single quotes': "{'from':'a'}",
    NaN: '{"from":NaN}',
    'a NUL': '\0',
    'a raw line break in a string': '{"subject":"a\nb"}',
    'words of JavaScript': 'undefined',
  }
  for (const path of ['/v1/emails', '/v1/emails/batch']) {
    for (const [name, body] of Object.entries(bodies)) {
      isRefused(t, await postBytes(path, body), 'invalid_json', undefined, { name })
    }
  }
  isRefused(
    t,
    await postBytes('/v1/emails', '', { 'Content-Length': '0' }),
    'invalid_json',
    undefined,
    { name: 'no byte, with Content-Length' },
  )
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('a JSON body other than an object gets validation_error', async (t) => {
  for (const body of ['null', 'true', '1', '1e999', '"text"', '[]', '[{}]']) {
    for (const path of ['/v1/emails', '/v1/emails/batch']) {
      isRefused(
        t,
        await post(base + path, liveKey, body),
        'validation_error',
        { _: ['must be a JSON object'] },
        { name: `${path} ${body}` },
      )
    }
  }
})

for (const [path, limit, fits] of [
  ['/v1/emails', 4, 200],
  ['/v1/sms', 4, 422],
  ['/v1/suppressions', 4, 422],
  ['/v1/domains', 4, 422],
  ['/v1/emails/batch', 16, 422],
  ['/v1/sms/batch', 16, 422],
] as const) {
  t.test(
    `POST ${path}: a body over ${limit} MB decompressed gets 422, with or without Content-Length`,
    async (t) => {
      const before = await traces(sql)
      const bytes = limit * 1024 * 1024
      const fields = { _: [`the body is larger than ${limit} MB`] }
      const bodyOf = (length: number) => JSON.stringify(anEmail(domain)).padEnd(length, ' ')
      const over = bodyOf(bytes + 1)
      const packed = ['once unpacked', gzipSync(over), { 'Content-Encoding': 'gzip' }] as const
      const plain = [
        ['with a Content-Length', over, {}],
        ['in chunks', over, { 'Transfer-Encoding': 'chunked' }],
      ] as const
      for (const [name, body, headers] of path.startsWith('/v1/emails')
        ? [packed, ...plain]
        : [packed]) {
        const response = await postBytes(path, body, headers)
        isRefused(t, response, 'validation_error', fields, { name })
      }
      t.strictSame(await traces(sql), before, 'nothing is stored')

      const most = await postBytes(path, gzipSync(bodyOf(bytes)), { 'Content-Encoding': 'gzip' })
      t.equal(most.status, fits, 'a body of exactly the limit is accepted')
      t.notOk(most.json.error?.fields._?.[0].includes('larger'))
    },
  )
}

t.test('fetch receives the refusal of a body far over the limit', async (t) => {
  const response = await post(`${base}/v1/emails`, liveKey, ' '.repeat(40 * 1024 * 1024))
  isRefused(t, response, 'validation_error', { _: ['the body is larger than 4 MB'] })
  t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain))).status, 200)
})

t.test('a connection stays usable after refusals, whether the body was read or not', async (t) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const suspended = await createOrganisation(sql)
  await sql`select ops.suspend(${suspended.id}, 'did not pay')`
  const fine = JSON.stringify(anEmail(domain))
  const ports = new Set<number | undefined>()
  for (const [key, body, status] of [
    [`sk_live_${'0'.repeat(64)}`, fine, 401],
    [suspended.liveKey, fine, 403],
    [liveKey, '{', 400],
    [liveKey, '{}', 422],
    [liveKey, JSON.stringify(anEmail('other.example')), 403],
    [liveKey, fine, 200],
  ] as const) {
    const request = open(`${base}/v1/emails`, {
      method: 'POST',
      agent,
      headers: { Authorization: `Bearer ${key}` },
    })
    request.end(body)
    t.equal((await responseTo(request)).status, status)
    ports.add(request.socket?.localPort)
  }
  t.equal(ports.size, 1, 'all on one connection')
})

const MB = 1024 * 1024

/** Writes the whole request before it reads the response, as simple clients do. */
async function writeThenRead(key: string, body: string, more = ''): Promise<Answer> {
  const client = await openRaw(base)
  client.socket.pause()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  client.socket.once('error', reject)
  client.socket.write(postHead('/v1/emails/batch', key, body.length, more) + body, (error) =>
    error ? reject(error) : resolve(),
  )
  await promise
  client.socket.resume()
  return client.answer()
}

t.test(
  'a client that sends 5 MB before it reads gets the refusal of its key, its rate or its size',
  async (t) => {
    const limited = await createOrganisation(sql)
    await holdSecond(sql, limited, 1000)
    const tooLarge = { _: ['the body is larger than 16 MB'] }
    const close = 'Connection: close\r\n'
    for (const [name, key, bytes, code, fields] of [
      ['a bad key', `sk_live_${'0'.repeat(64)}`, 5 * MB, 'unauthorized', undefined],
      ['the rate limit', limited.liveKey, 5 * MB, 'rate_limited', undefined],
      ['the size', liveKey, 20 * MB, 'validation_error', tooLarge],
    ] as const) {
      const body = ' '.repeat(bytes)
      isRefused(t, await writeThenRead(key, body, close), code, fields, { name: `${name}, raw` })
      const response = await post(`${base}/v1/emails/batch`, key, body)
      isRefused(t, response, code, fields, { name: `${name}, fetch` })
      const request = open(`${base}/v1/emails/batch`, {
        method: 'POST',
        agent: new Agent({ keepAlive: false }),
        headers: { Authorization: `Bearer ${key}`, 'Content-Length': bytes },
      })
      request.end(body)
      isRefused(t, await responseTo(request), code, fields, { name: `${name}, node:http` })
    }
  },
)

t.test('curl reads the refusal of a 5 MB body', { skip: !hasCurl && 'no curl' }, async (t) => {
  const key = `sk_live_${'0'.repeat(64)}`
  for (const expect of ['Expect:', 'Expect: 100-continue']) {
    const curl = spawn('curl', [
      ...['--silent', '--show-error', '--data-binary', '@-', '--write-out', '%{http_code}'],
      ...['--header', `Authorization: Bearer ${key}`, '--header', expect],
      `${base}/v1/emails/batch`,
    ])
    curl.stdin.end(' '.repeat(5 * MB))
    const [output, errors] = await Promise.all([text(curl.stdout), text(curl.stderr)])
    t.match(output, /"code":"unauthorized".*401$/, expect)
    t.equal(errors, '')
  }
})

t.test('a connection stays usable after the refusal of a 5 MB body', async (t) => {
  const client = await openRaw(base)
  const body = ' '.repeat(5 * MB)
  client.write(postHead('/v1/emails/batch', `sk_live_${'0'.repeat(64)}`, body.length) + body)
  client.write('GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  t.match(await client.received, /^HTTP\/1\.1 401 .*HTTP\/1\.1 200 .*"up"/s)
})

t.test('an upload that breaks off stores nothing and affects no other request', async (t) => {
  const before = await traces(sql)
  const body = JSON.stringify(anEmail(domain))
  for (const headers of [
    { 'Content-Length': String(body.length + 1) },
    { 'Transfer-Encoding': 'chunked' },
    { 'Content-Encoding': 'gzip', 'Content-Length': '1000' },
  ]) {
    const request = open(`${base}/v1/emails`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${liveKey}`, ...headers },
    })
    const gone = new Promise((resolve) => request.once('error', resolve))
    request.write(body, () => request.destroy(new Error('gone')))
    await gone
  }
  t.equal((await postBytes('/v1/emails', '{}')).status, 422)
  t.strictSame(await traces(sql), before)
})
