import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { caller } from '../../src/db/call.ts'
import { SetupError } from '../../src/errors.ts'
import { createSealer } from '../../src/webhooks/secrets.ts'
import { createDatabase, serviceUrl } from '../fixtures/database.ts'
import { addDkimKeys } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { runCommand } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint } from '../fixtures/webhooks.ts'

const OTHER_KEY = Buffer.alloc(32, 9).toString('base64')
const other = createSecrets([OTHER_KEY])
const line =
  'SECRET_KEY: it opens no secret in this database; set the key that sealed them, see /docs/deployment#secret-key'

t.test('worker with a SECRET_KEY that opens no secret in the database', async (t) => {
  const { url, sql } = await createDatabase()
  const organisation = await createOrganisation(sql)
  const third = createSecrets([Buffer.alloc(32, 10).toString('base64')])
  const startWorker = () => startTestService(url, { roles: ['api', 'worker'], secrets: third })
  await createEndpoint(sql, organisation)

  await t.test('starts while the database has no secret', async () => {
    await (await startWorker()).stop()
  })

  await createSealer(caller(sql), other)()

  await t.test('exits with one line once a webhook secret is sealed by another key', async (t) => {
    await t.rejects(startWorker(), new SetupError(line))
    const SECRET_KEY = Buffer.alloc(32, 11).toString('base64')
    t.same(await runCommand(['start'], { DATABASE_URL: await serviceUrl(url), SECRET_KEY }), {
      code: 1,
      stdout: '',
      stderr: `${line}\n`,
    })
  })

  await t.test('starts once it opens the secret of one endpoint', async () => {
    await createEndpoint(sql, organisation)
    await createSealer(caller(sql), third)()
    await (await startWorker()).stop()
  })
})

t.test('worker with a SECRET_KEY that opens no DKIM key of a relay: exits', async (t) => {
  const { url, sql } = await createDatabase()
  const { domain } = await createOrganisation(sql)
  await addDkimKeys(sql, { domain, dkimZone: 'dkim.zone', values: ['k=rsa; p='] })
  await sql`update app.dkim_keys set private_key = ${other.seal('a key')}`
  await t.rejects(startTestService(url, { roles: ['worker'] }), { message: line })
  await (await startTestService(url, { roles: ['worker'], secrets: other })).stop()
})
