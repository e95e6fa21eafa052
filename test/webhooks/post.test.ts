import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer as createHttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createPoster, type PosterOptions } from '../../src/webhooks/post.ts'
import {
  freePort,
  listen,
  noNsd,
  noSecondLoopback,
  selfSigned,
  startNsd,
  startTcpServer,
} from '../fixtures/network.ts'
import { VirtualTimer } from '../fixtures/smpp.ts'
import { until } from '../fixtures/time.ts'
import { startReceiver } from '../fixtures/webhooks.ts'

const certificate = selfSigned()
const noOpenssl = !certificate && 'there is no openssl on this machine'

function posterWith(options: Partial<PosterOptions> = {}) {
  const patient = { allowsPrivate: true, dnsServers: [], timeoutMs: 60_000 }
  const poster = createPoster({ ...patient, ...options })
  t.teardown(() => poster.close())
  return poster
}

const poster = posterWith()
/** Posts of `timed` time out when a test moves this time. */
const time = new VirtualTimer()
const TIMEOUT_MS = 10_000
const timed = posterWith({ timeoutMs: TIMEOUT_MS, time })
/** Keeps idle connections longer than any test takes between two posts. */
const KEPT_MS = 600_000

/** Counts the chunks of response bodies that are read; the result waits for a count. */
function readsIn(t: Test) {
  let reads = 0
  const count = () => {
    reads += 1
  }
  subscribe('undici:request:bodyChunkReceived', count)
  t.teardown(() => unsubscribe('undici:request:bodyChunkReceived', count))
  return (atLeast: number) => until(`${atLeast} reads`, async () => reads >= atLeast)
}

const at = (port: number) => `http://127.0.0.1:${port}/hook`
const post = (url: string, by = poster, signal?: AbortSignal) =>
  by.post({ url, headers: { 'content-type': 'application/json' }, body: '{}' }, signal)

/** The outcome of a post to a server that sends these bytes and then calls `then` with the connection. */
async function outcomeOf(answer: string | Buffer, then: (socket: Socket) => void, by = poster) {
  const { port } = await startTcpServer((socket) => {
    socket.once('data', () => socket.write(answer, () => then(socket)))
  })
  return post(at(port), by)
}

const keep = () => {}
const end = (socket: Socket) => socket.end()
const reset = (socket: Socket) => socket.resetAndDestroy()
const ok = (body: string | Buffer) =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`),
    Buffer.from(body),
  ])

t.test('post(): any 2xx is a success', async (t) => {
  const { url, received, server } = await startReceiver()
  t.same(await post(url), { status: 200, error: null, response: 'ok' })
  server.removeAllListeners('request').on('request', (request, response) => {
    response.statusCode = Number(request.url?.slice(1))
    response.end()
  })
  for (const status of [201, 202, 204, 299]) {
    const outcome = await post(new URL(`/${status}`, url).href)
    t.same(outcome, { status, error: null, response: '' })
  }
  t.equal(received.length, 1)
})

t.test('post(): body bytes and header names are sent unchanged', async (t) => {
  const body = JSON.stringify({ text: 'Grüße 🎈 \u0000 \u2028' })
  const sent: Buffer[] = []
  const { port } = await startTcpServer((socket) => {
    socket.on('data', (chunk) => {
      sent.push(chunk)
      if (Buffer.concat(sent).includes(body)) socket.write(ok('fine'))
    })
  })
  const headers = { 'Content-Type': 'application/json', 'Service-Signature': 't=1,v1=aa,v1=bb' }
  const url = `http://127.0.0.1:${port}/a/b%2Fc?d=e&f`
  t.match(await poster.post({ url, headers, body }), { status: 200, error: null, response: 'fine' })
  const [head = '', received] = Buffer.concat(sent).toString().split('\r\n\r\n')
  t.equal(received, body)
  const [line, ...lines] = head.split('\r\n')
  t.equal(line, 'POST /a/b%2Fc?d=e&f HTTP/1.1')
  t.same(
    lines.sort(),
    [
      'Content-Type: application/json',
      'Service-Signature: t=1,v1=aa,v1=bb',
      'connection: keep-alive',
      `content-length: ${Buffer.byteLength(body)}`,
      `host: 127.0.0.1:${port}`,
    ].sort(),
  )
})

t.test('post(): any other status is a failure, and its response is stored', async (t) => {
  const { url, server } = await startReceiver()
  server.removeAllListeners('request').on('request', (request, response) => {
    response.statusCode = Number(request.url?.slice(1))
    response.end('what it says')
  })
  for (const status of [400, 401, 404, 410, 429, 500, 503]) {
    const outcome = await post(new URL(`/${status}`, url).href)
    t.same(outcome, { status, error: `responded ${status}`, response: 'what it says' })
  }
})

t.test('a redirect is a failure, and nothing is asked of what it points at', async (t) => {
  const target = await startReceiver()
  for (const status of [301, 302, 303, 307, 308]) {
    const { url } = await startReceiver((response) => {
      response.writeHead(status, { location: target.url }).end()
    })
    t.same(await post(url), { status, error: `responded ${status}`, response: '' })
  }
  t.equal(target.received.length, 0)
})

t.test('interim responses', async (t) => {
  const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n'
  const fine = { status: 200, error: null, response: 'fine' }
  const failed = (error: string) => ({ status: null, error, response: null })

  t.test('are ignored, up to ten, also on a connection that is used again', async (t) => {
    const { port, connections } = await startTcpServer((socket) => {
      socket.on('data', (chunk) => {
        if (chunk.toString().endsWith('{}')) socket.write(hints.repeat(10) + ok('fine'))
      })
    })
    const own = posterWith({ idleMs: KEPT_MS })
    t.same(await post(at(port), own), fine)
    t.same(await post(at(port), own), fine)
    t.equal(connections(), 1)
  })

  t.test('are no response', async (t) => {
    const error = 'the connection was closed without a response'
    t.same(await outcomeOf(hints, end), failed(error))
  })

  t.test('fail the attempt when they were not requested', async (t) => {
    const goOn = 'HTTP/1.1 100 Continue\r\n\r\n'
    t.same(
      await outcomeOf(goOn + ok('fine'), keep),
      failed('the server sent 100 Continue, which was not requested'),
    )
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'
    t.same(
      await outcomeOf(upgrade, keep),
      failed('the server switched protocols, which was not requested'),
    )
  })

  t.test('more than ten fail the attempt and close the connection', async (t) => {
    const begun = 'HTTP/1.1 103 Early Hints\r\n'
    for (const [first, more, error] of [
      [hints, hints, 'it sent more than 10 interim responses'],
      [begun, 'Link: </style.css>\r\n', 'the headers of the response are too long'],
    ] as const) {
      const { port, open } = await startTcpServer((socket) => {
        const pour = () => {
          while (!socket.destroyed && socket.write(more.repeat(100)));
          socket.once('drain', pour)
        }
        socket.once('data', () => socket.write(first, pour))
      })
      t.same(await post(at(port)), failed(error))
      await until('the connection to be closed', async () => open() === 0)
    }
  })
})

t.test('failed connections have a message for the owner', async (t) => {
  const failed = (error: string) => ({ status: null, error, response: null })

  t.test('refused', async (t) => {
    t.same(await post(at(await freePort())), failed('the connection was refused'))
  })

  t.test('reset or closed before a response', async (t) => {
    const error = 'the connection was closed without a response'
    t.same(await outcomeOf('', reset), failed(error))
    t.same(await outcomeOf('', end), failed(error))
    t.same(await outcomeOf('HTTP/1.1 200 OK\r\nContent-', reset), failed(error))
  })

  t.test('invalid HTTP and endless headers', async (t) => {
    t.same(await outcomeOf('SSH-2.0-OpenSSH_9.2p1\r\n', keep), failed('the response is not HTTP'))
    const long = `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`
    t.same(await outcomeOf(long, keep), failed('the headers of the response are too long'))
  })

  t.test('headers that do not arrive in time', async (t) => {
    const error = 'timed out while waiting for the response'
    let asked = 0
    const count = () => {
      asked += 1
    }
    const answers = ['', 'HTTP/1.1 200 OK\r\n']
    const outcomes = Promise.all(answers.map((answer) => outcomeOf(answer, count, timed)))
    await until('both requests', async () => asked === 2)
    await time.pass(TIMEOUT_MS)
    t.same(await outcomes, [failed(error), failed(error)])
  })

  t.test('a name that does not exist, or whose name server fails', { skip: noNsd }, async (t) => {
    const { address } = await startNsd({ 'acme.zone': 'text TXT "x"', 'broken.zone': null })
    const named = posterWith({ allowsPrivate: false, dnsServers: [address], timeoutMs: 600_000 })
    for (const [name, error] of [
      ['nowhere.acme.zone', 'the host name was not found'],
      ['text.acme.zone', 'the host name was not found'],
      [`${'x'.repeat(64)}.acme.zone`, 'the host name was not found'],
      ['broken.zone', 'the host name could not be looked up (ESERVFAIL)'],
      ['elsewhere.zone', 'the host name could not be looked up (EREFUSED)'],
    ] as const) {
      t.same(await post(`https://${name}/`, named), failed(error), name)
    }
  })

  t.test('TLS that fails', { skip: noOpenssl }, async (t) => {
    let requests = 0
    const server = createHttpsServer({ ...certificate }, (_, response) => {
      requests += 1
      response.end()
    })
    const { port } = await listen(server)
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    t.teardown(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
    const url = `https://127.0.0.1:${port}/`
    t.same(await post(url), failed('the certificate is self-signed'))
    t.same(await post(url), failed('the certificate is self-signed'), 'the second time as well')
    t.equal(requests, 0)
    const plain = await startReceiver()
    const outcome = await post(plain.url.replace('http:', 'https:'))
    t.same(outcome, failed('the server does not speak TLS on this port'))
    const hangUp = await startTcpServer((socket) => socket.once('data', () => socket.end()))
    t.same(
      await post(`https://127.0.0.1:${hangUp.port}/`),
      failed('the connection was closed before it was established'),
    )
    const silence = await startTcpServer((socket) => socket.resume())
    const hasty = posterWith({ timeoutMs: 1000 })
    t.same(
      await post(`https://127.0.0.1:${silence.port}/`, hasty),
      failed('timed out while connecting'),
    )
    await until('the connection to be closed', async () => silence.open() === 0)
  })

  t.test('a URL that cannot be parsed', async (t) => {
    for (const url of ['', 'acme', 'https://', 'http://1.2.3.4.5/', 'http://a:99999/']) {
      t.same(await post(url), failed('the URL cannot be parsed'), url)
    }
  })
})

t.test('responses that fail after they began', async (t) => {
  const begun = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun'
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n'
  const failed = (error: string) => ({ status: 200, error, response: 'begun' })

  t.test('connections closed early', async (t) => {
    const error = 'the connection was closed before the end of the response'
    for (const answer of [begun, chunked]) {
      for (const then of [reset, end]) t.same(await outcomeOf(answer, then), failed(error))
    }
    const garbled = await outcomeOf(`${chunked}garbled\r\n`, keep)
    t.match(garbled, { status: 200, error: 'the response is not HTTP' })
  })

  t.test('stalled responses', async (t) => {
    const error = 'timed out before the end of the response'
    const haveRead = readsIn(t)
    const outcomes = Promise.all([begun, chunked].map((answer) => outcomeOf(answer, keep, timed)))
    await haveRead(2)
    await time.pass(TIMEOUT_MS)
    t.same(await outcomes, [failed(error), failed(error)])
  })

  t.test('slow responses, because the time limit is for the whole response', async (t) => {
    const drip = (socket: Socket) => {
      const timer = setInterval(() => socket.write('1\r\n.\r\n'), 20)
      socket.once('close', () => clearInterval(timer))
    }
    const haveRead = readsIn(t)
    const dripping = outcomeOf(chunked, drip, timed)
    await haveRead(5)
    await time.pass(TIMEOUT_MS)
    const outcome = await dripping
    t.match(outcome, { status: 200, error: 'timed out before the end of the response' })
    t.match(outcome.response, /^begun\.+$/)
  })

  t.test('endless responses', async (t) => {
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    const pour = (socket: Socket) => {
      while (!socket.destroyed && socket.write(chunk));
      socket.once('drain', () => pour(socket))
    }
    const outcome = await outcomeOf(chunked, pour)
    t.match(outcome, { status: 200, error: 'the response is longer than 1 MiB' })
    t.equal(outcome.response, `begun${'x'.repeat(995)}`)
  })

  t.test('responses whose status is a failure', async (t) => {
    const answer = 'HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nbegun'
    const outcome = { status: 500, error: 'responded 500', response: 'begun' }
    t.same(await outcomeOf(answer, reset), outcome)
    const haveRead = readsIn(t)
    const stalling = outcomeOf(answer, keep, timed)
    await haveRead(1)
    await time.pass(TIMEOUT_MS)
    t.same(await stalling, outcome)
  })
})

t.test(
  '1 000 characters of a response are stored, without those that Postgres cannot store',
  async (t) => {
    const kept = async (body: string | Buffer) => (await outcomeOf(ok(body), keep)).response
    t.equal(await kept('x'.repeat(1024 * 1024)), 'x'.repeat(1000))
    t.equal(await kept('ü'.repeat(1001)), 'ü'.repeat(1000))
    t.equal(
      await kept('🎈'.repeat(1001)),
      '🎈'.repeat(1000),
      'a surrogate pair is one character and is not split',
    )
    t.equal(await kept(`x${'🎈'.repeat(1001)}`), `x${'🎈'.repeat(999)}`)
    t.equal(await kept('a\0b'), 'a\uFFFDb')
    t.equal(await kept(Buffer.from([0x61, 0xff, 0xc3, 0x62, 0xe2, 0x82])), 'a\uFFFD\uFFFDb\uFFFD')
    const packed = gzipSync('x'.repeat(100_000))
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`
    const outcome = await outcomeOf(Buffer.concat([Buffer.from(head), packed]), keep)
    t.match(outcome, { status: 200, error: null })
    t.notMatch(outcome.response, 'xxx', 'compressed bodies are not decompressed')
  },
)

t.test('a signal ends a post in any phase', async (t) => {
  const outcome = {
    status: null,
    error: 'the service stopped before the end of the response',
    response: null,
  }
  const { url, received } = await startReceiver()
  t.same(await post(url, poster, AbortSignal.abort()), outcome)
  t.equal(received.length, 0)

  const stop = new AbortController()
  const silence = await startTcpServer((socket) => socket.once('data', () => stop.abort()))
  t.same(await post(at(silence.port), poster, stop.signal), outcome)
  await until('its connection to be closed', async () => silence.open() === 0)

  const stopShaking = new AbortController()
  const shaking = await startTcpServer((socket) => socket.once('data', () => stopShaking.abort()))
  const own = posterWith()
  t.same(await post(`https://127.0.0.1:${shaking.port}/`, own, stopShaking.signal), outcome)
  await own.close()
  await until('its connection to be closed', async () => shaking.open() === 0)
})

t.test('close(): ends posts in progress, and later posts fail', async (t) => {
  const own = posterWith()
  const outcome = {
    status: null,
    error: 'the service stopped before the end of the response',
    response: null,
  }
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  const silence = await startTcpServer((socket) => socket.once('data', () => resolve()))
  const posting = post(at(silence.port), own)
  await arrived
  await own.close()
  t.same(await posting, outcome)
  t.same(await post(at(silence.port), own), outcome)
  t.equal(silence.connections(), 1)
})

t.test('post(): an invalid header is an outcome, not an exception', async (t) => {
  const { url, received } = await startReceiver()
  const headers = { 'Service-Event-Id': 'evt_1\r\nX-Injected: yes' }
  t.same(await poster.post({ url, headers, body: '' }), {
    status: null,
    error: 'the connection failed (UND_ERR_INVALID_ARG)',
    response: null,
  })
  t.equal(received.length, 0)
})

t.test('connections', async (t) => {
  t.test('a connection is reused, but not after a response that was cut off', async (t) => {
    let isLong = false
    const { port, connections, open } = await startTcpServer((socket) => {
      socket.on('data', (chunk) => {
        if (!chunk.toString().endsWith('{}')) return
        if (!isLong) return socket.write(ok('fine'))
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n')
        socket.write('x'.repeat(1_500_000))
      })
    })
    const own = posterWith({ idleMs: KEPT_MS })
    await post(at(port), own)
    t.match(await post(at(port), own), { error: null })
    t.equal(connections(), 1)
    isLong = true
    t.match(await post(at(port), own), { error: 'the response is longer than 1 MiB' })
    isLong = false
    t.match(await post(at(port), own), { error: null, response: 'fine' })
    t.equal(connections(), 2)
    await until('the connection of the cut response to be closed', async () => open() === 1)
  })

  t.test('concurrent posts have a connection each, also to many origins', async (t) => {
    const waiting: Socket[] = []
    const { port, connections, open } = await startTcpServer((socket) => {
      socket.on('data', (chunk) => {
        if (!chunk.toString().endsWith('{}')) return
        waiting.push(socket)
        if (waiting.length < 330) return
        for (const each of waiting.splice(0)) each.write(ok('fine'))
      })
    }, '0.0.0.0')
    const hosts = Array.from({ length: 300 }, (_, at) => `127.0.${at >> 7}.${1 + (at & 127)}`)
    const same = Array<string>(30).fill('127.1.0.1')
    const outcomes = await Promise.all(
      [...hosts, ...same].map((host) => post(`http://${host}:${port}/`)),
    )
    t.equal(outcomes.filter(({ error }) => error === null).length, 330)
    t.equal(connections(), 330)
    await until('idle ones to be closed', async () => open() === 0)
  })
})

/** The outcomes of posts by a new process with these environment variables. */
async function outcomesIn(env: Record<string, string>, urls: string[]): Promise<unknown> {
  const code = `
    import { createPoster } from ${JSON.stringify(import.meta.resolve('../../src/webhooks/post.ts'))}
    const poster = createPoster({ allowsPrivate: true, dnsServers: [], timeoutMs: 60_000, idleMs: ${KEPT_MS} })
    const outcomes = []
    for (const url of ${JSON.stringify(urls)}) {
      outcomes.push(await poster.post({ url, headers: {}, body: 'x' }))
    }
    await poster.close()
    console.log(JSON.stringify(outcomes))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', code],
    { env },
  )
  return JSON.parse(stdout)
}

t.test('a proxy from the environment is not used', async (t) => {
  const proxy = await startTcpServer((socket) => socket.destroy())
  const { url, received } = await startReceiver()
  const names = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
  const env = Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${proxy.port}`]))
  t.match(await outcomesIn({ ...env, NODE_USE_ENV_PROXY: '1' }, [url]), [{ error: null }])
  t.equal(received.length, 1)
  t.equal(proxy.connections(), 0)
})

const noOtherName = noOpenssl || noSecondLoopback
t.test('a trusted certificate is valid for its own name only', { skip: noOtherName }, async (t) => {
  const server = createHttpsServer({ ...certificate }, (request, response) => {
    request.resume().on('end', () => response.end('fine'))
  })
  const { port, connections } = await listen(server, '0.0.0.0')
  const file = join(t.testdir({ 'authority.pem': certificate?.cert ?? '' }), 'authority.pem')
  const own = `https://127.0.0.1:${port}/`
  const others = `https://127.0.0.2:${port}/`
  const fine = { status: 200, error: null, response: 'fine' }
  const foreign = { status: null, error: 'the certificate is for another name', response: null }
  t.same(await outcomesIn({ NODE_EXTRA_CA_CERTS: file }, [own, others, own, others]), [
    ...[fine, foreign],
    ...[fine, foreign],
  ])
  t.equal(connections(), 3, 'the accepted connection is reused')
})
