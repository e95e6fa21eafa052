import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post, request, sendRaw } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { liveKey, domain } = organisation
await liftRate(sql, organisation)

t.test('an unknown route gets 404 in the envelope, with and without a key', async (t) => {
  const paths = [
    '/v1/',
    '/v1/email',
    '/v1/emails/batch/1',
    '/v1/emails/em_1/events',
    '/v1//emails',
    '/v1/%65mails/batch/x',
    '/v1/constructor',
    '/v1/__proto__',
    '/v1/emails%2Fbatch/x',
    '/v1/..%2f..%2fetc/passwd',
  ]
  for (const path of paths) {
    isRefused(t, await get(base + path, liveKey), 'not_found', undefined, {
      name: `${path} with a key`,
      hasKey: true,
    })
    isRefused(t, await get(base + path, null), 'not_found', undefined, {
      name: `${path} without a key`,
      hasKey: false,
    })
  }
  for (const path of ['/v1', '/v2/emails', '/emails', '/docs/nothing', '/favicon.ico']) {
    isRefused(t, await get(base + path, liveKey), 'not_found', undefined, {
      name: path,
      hasKey: false,
    })
  }
})

t.test('every endpoint refuses unknown query parameters', async (t) => {
  const { json: openapi } = await get(`${base}/openapi.json`, null)
  const before = await traces(sql)
  let endpoints = 0
  for (const [path, methods] of Object.entries(openapi.paths)) {
    for (const method of Object.keys(methods as object)) {
      const target = `${base}${path.replace('{id}', 'x')}?nosuch=1&__proto__=2`
      const body = method === 'post' ? '{}' : undefined
      const response = await request(method.toUpperCase(), target, liveKey, body)
      const fields = Object.fromEntries(
        ['nosuch', '__proto__'].map((name) => [name, ['unknown field']]),
      )
      // Together with the problems of the body.
      const all = { ...response.json.error.fields, ...fields }
      isRefused(t, response, 'validation_error', all, { name: `${method} ${path}` })
      endpoints += 1
    }
  }
  t.ok(endpoints >= 15)
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('a wrong method gets 404 in the envelope and changes nothing', async (t) => {
  const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  const before = await traces(sql)
  const wrong = [
    ['/v1/emails', ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']],
    ['/v1/emails/batch', ['PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    [`/v1/emails/${json.id}`, ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/v1/suppressions', ['PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/v1/suppressions/', ['DELETE']],
    ['/v1/suppressions/sup_01h455vb4pex5vsknk084sn02q', ['GET', 'POST', 'PUT', 'PATCH', 'OPTIONS']],
  ] as const
  for (const [path, methods] of wrong) {
    for (const method of methods) {
      const body = ['GET', 'OPTIONS'].includes(method) ? undefined : anEmail(domain)
      isRefused(t, await request(method, base + path, liveKey, body), 'not_found', undefined, {
        name: `${method} ${path}`,
      })
    }
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('HEAD gets the response of GET without the body', async (t) => {
  const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  for (const [path, status] of [
    [`/v1/emails/${json.id}`, 200],
    ['/v1/emails/em_1', 404],
    ['/v1/emails', 200],
    ['/v1/emails/batch', 404],
    ['/nothing', 404],
    ['/healthz', 200],
  ] as const) {
    const head = await request('HEAD', base + path, liveKey)
    t.equal(head.status, status, path)
    t.equal(head.text, '')
  }
})

t.test('an invalid path gets 404, never 500', async (t) => {
  const ids = ['%zz', '%', '%E0%A4%A', '%ff', '%00', 'em_%00', '%ED%A0%80', '%F0%9F%92%A9', "';--"]
  for (const id of ids) {
    isRefused(t, await get(`${base}/v1/emails/${id}`, liveKey), 'not_found', undefined, {
      name: id,
    })
  }
  const long = `em_${'0'.repeat(10_000)}`
  isRefused(t, await get(`${base}/v1/emails/${long}`, liveKey), 'not_found')
})

t.test('a request that is not HTTP gets the envelope, and the connection closes', async (t) => {
  const malformed = {
    garbage: 'garbage\r\n\r\n',
    'a TLS hello': Buffer.from('16030100c6010000c20303', 'hex'),
    'a header without a colon': 'GET /healthz HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n',
    'two lengths':
      'POST /v1/emails HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
    'length and chunks':
      'POST /v1/emails HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'an unknown method': 'SEND /v1/emails HTTP/1.1\r\nHost: a\r\n\r\n',
    'an unknown version': 'GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n',
    'headers without end': `GET /healthz HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(100_000)}`,
    'a chunk without length':
      'POST /v1/emails HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  }
  for (const [name, bytes] of Object.entries(malformed)) {
    isRefused(
      t,
      await sendRaw(base, bytes),
      'validation_error',
      { _: ['is not a valid HTTP request'] },
      { name, hasKey: false },
    )
  }
})

t.test('invalid bytes after a request do not replace its response', async (t) => {
  const body = JSON.stringify(anEmail(domain))
  const before = await traces(sql)
  const { status, json, headers } = await sendRaw(
    base,
    `POST /v1/emails HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${liveKey}\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}garbage\r\n\r\n`,
  )
  t.strictSame([status, json.status, headers.get('connection')], [200, 'queued', 'close'])
  t.equal((await traces(sql)).messages, before.messages + 1)
})

t.test('CONNECT gets not_found', async (t) => {
  const response = await sendRaw(base, 'CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: a\r\n\r\n')
  isRefused(t, response, 'not_found', undefined, { hasKey: false })
})

t.test(
  'a request without Host or with an unknown Expect gets a response with x-request-id',
  async (t) => {
    const close = 'Connection: close\r\n\r\n'
    const noHost = await sendRaw(base, `GET /healthz HTTP/1.1\r\n${close}`)
    t.match(noHost.headers.get('x-request-id'), /^[0-9a-f-]{36}$/, 'without a Host')
    const expects = await sendRaw(
      base,
      `GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n${close}`,
    )
    t.match(expects.headers.get('x-request-id'), /^[0-9a-f-]{36}$/, 'with an unknown Expect')
  },
)

t.test('a request-target in absolute form or with odd slashes is served as a path', async (t) => {
  const absolute = await sendRaw(
    base,
    `GET http://elsewhere.example/healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  )
  t.equal(absolute.status, 200)
  for (const target of ['//healthz', '*', '/\\healthz', '/healthz/%2e%2e/v1']) {
    const method = target === '*' ? 'OPTIONS' : 'GET'
    const { status, headers } = await sendRaw(
      base,
      `${method} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )
    t.equal(status, 404, target)
    t.ok(headers.get('x-request-id'), target)
  }
})

t.test('after a refusal a half-open connection is closed within seconds', async (t) => {
  const { hostname, port } = new URL(base)
  for (const request of ['CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: a', 'no request']) {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.on('error', () => undefined)
    socket.write(`${request}\r\n\r\n`)
    socket.resume()
    await once(socket, 'end')
    const isClosed = async () => {
      // A half-closed socket accepts this.
      socket.write('.')
      return socket.destroyed
    }
    t.ok(await until('the connection to be closed', isClosed), request)
  }
})
