// The naive form of accepting, to compare with: the same checks and the same SQL, but a transaction
// of its own for each request, and nothing between it and the socket but node:http.

import { hash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { catalogueJson } from '../../src/errors.ts'
import { parseEmail } from '../../src/schemas/email.ts'

const call = caller(connect(process.argv[2] as string, { role: 'postgram_service', max: 20 }))
const catalogue = catalogueJson('http://localhost')

const server = createServer(async (request, response) => {
  const key = request.headers.authorization?.slice('Bearer '.length) ?? ''
  const [admission] = await call('admit', { keys: [hash('sha256', key, 'hex')] })
  const body = await text(request)
  const parsed = parseEmail(JSON.parse(body))
  if (!admission || admission.retryAfter !== null || 'fields' in parsed) {
    response.writeHead(429).end()
    return
  }
  const [answer] = await call('accept_emails', {
    calls: [
      {
        n: 0,
        organisation_id: admission.organisationId,
        mode: admission.mode,
        key: String(request.headers['idempotency-key'] ?? randomUUID()),
        fingerprint: hash('sha256', body, 'hex'),
        batch: false,
      },
    ],
    items: [{ ...parsed.value, call: 0, index: 0 }],
    catalogue,
  })
  response.writeHead(answer?.code === null ? 200 : 422, {
    'Content-Length': Buffer.byteLength(answer?.body ?? ''),
  })
  response.end(answer?.body ?? '')
})
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }))
})
