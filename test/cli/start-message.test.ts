import t from 'tap'
import { startMessage } from '../../src/cli/start-message.ts'

const demo = { organisation: 'org_1', liveKey: 'sk_live_secret', testKey: 'sk_test_secret' }
const psqlUrl = 'postgres://postgres:hunter2@127.0.0.1:5432/postgram'
const embedded = { demo, psqlUrl, dataFolder: '/var/lib/postgram' }
const database = 'postgram on 127.0.0.1:5432 as postgram_app'
const service = { address: 'http://127.0.0.1:3000', metricsAddress: null }

t.test('a start that may show secrets prints keys, the psql address and a curl', async (t) => {
  const dashboardLink = 'http://127.0.0.1:3000/login/secret'
  const text = startMessage({
    roles: ['api'],
    service,
    database,
    embedded,
    hasSecrets: true,
    dashboardLink,
  })
  for (const part of [
    dashboardLink,
    demo.liveKey,
    demo.testKey,
    psqlUrl,
    'curl -s http://127.0.0.1:3000/v1/',
  ]) {
    t.ok(text.includes(part), part)
  }
})

t.test('a start that may not show secrets prints where they are', async (t) => {
  t.equal(
    startMessage({
      roles: ['api'],
      service,
      database,
      embedded,
      hasSecrets: false,
      dashboardLink: null,
    }),
    [
      'Postgram runs (api).',
      '  API       http://127.0.0.1:3000/v1',
      '  database  postgram on 127.0.0.1:5432 as postgram_app',
      '  keys      in /var/lib/postgram/demo.json, or by: npm run seed',
      '  psql      postgres://postgres@127.0.0.1:5432/postgram, password in /var/lib/postgram/postgres-password',
    ].join('\n'),
  )
})
