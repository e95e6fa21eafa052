import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, isRefused, lacksScope, request } from '../fixtures/http.ts'
import { createOrganisation, liftRate, suppress } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

type Known = {
  method: string
  path: string
  scope: string
  body?: unknown
  isSend?: boolean
  /** Creates the resource of the request; its ID is appended to the path. */
  makeId?: () => Promise<string>
}

const someScopes: string[][] = Array.from({ length: 2 ** enums.scope.length - 1 }, (_, n) =>
  enums.scope.filter((_, place) => (n + 1) & (1 << place)),
)

const states = {
  active: () => undefined,
  paused: (id: string) => sql`select ops.pause(${id}, 'complaints')`,
  suspended: (id: string) => sql`select ops.suspend(${id}, 'did not pay')`,
}

for (const [state, enter] of Object.entries(states)) {
  t.test(
    `access of an organisation that is ${state}: keys can do what their scopes allow`,
    async (t) => {
      const organisation = await createOrganisation(sql)
      const { id, domain, liveKey } = organisation
      await liftRate(sql, organisation)
      const email = anEmail(domain)
      const sms = anSms()
      const { json } = await request('POST', `${base}/v1/emails`, liveKey, email)
      const sent = await request('POST', `${base}/v1/sms`, liveKey, sms)
      const send = { method: 'POST', scope: 'emails:send', isSend: true }
      const sendSms = { ...send, scope: 'sms:send' }
      const entry = () => suppress(sql, organisation, `${Math.random()}@c.example`)
      const body = { email: 'ann@c.example' }
      const endpoints: Known[] = [
        { ...send, path: '/v1/emails', body: email },
        { ...send, path: '/v1/emails/batch', body: { emails: [email] } },
        { method: 'GET', path: '/v1/emails', scope: 'read' },
        { method: 'GET', path: `/v1/emails/${json.id}`, scope: 'read' },
        { ...sendSms, path: '/v1/sms', body: sms },
        { ...sendSms, path: '/v1/sms/batch', body: { messages: [sms] } },
        { method: 'GET', path: '/v1/sms', scope: 'read' },
        { method: 'GET', path: `/v1/sms/${sent.json.id}`, scope: 'read' },
        { method: 'GET', path: '/v1/suppressions', scope: 'read' },
        { method: 'GET', path: '/v1/usage', scope: 'read' },
        { method: 'POST', path: '/v1/suppressions', scope: 'emails:send', body },
        { method: 'DELETE', path: '/v1/suppressions/', scope: 'emails:send', makeId: entry },
      ]
      await enter(id)
      for (const mode of enums.mode) {
        for (const scopes of someScopes) {
          const [row] = await sql`select ops.create_api_key(${id}, ${mode}, ${scopes}) as key`
          for (const { method, path, scope, body, isSend, makeId } of endpoints) {
            const id = makeId ? await makeId() : ''
            const response = await request(method, base + path + id, row?.key, body)
            const name = `${method} ${path} with a ${mode} key for ${scopes}`
            if (state === 'suspended') isRefused(t, response, 'org_suspended', undefined, { name })
            else if (!scopes.includes(scope)) {
              isRefused(t, response, 'insufficient_scope', undefined, {
                name,
                words: lacksScope(scope),
              })
            } else if (method === 'DELETE' && mode === 'test') {
              t.strictSame(
                [response.status, response.json.error.code],
                [403, 'insufficient_scope'],
                name,
              )
            } else if (state === 'paused' && mode === 'live' && isSend) {
              isRefused(t, response, 'org_paused', undefined, { name })
            } else t.ok([200, 201].includes(response.status), name)
          }
        }
      }
    },
  )
}
