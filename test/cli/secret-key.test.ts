import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { SetupError } from '../../src/errors.ts'
import { createDatabase } from '../fixtures/database.ts'
import { addDkimKeys } from '../fixtures/dkim-keys.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { runCommand } from '../fixtures/run-command.ts'
import { startTestService } from '../fixtures/service.ts'
import { serviceUrl } from '../fixtures/service-login.ts'
import { createEndpoint } from '../fixtures/webhook-events.ts'

const OTHER_KEY = Buffer.alloc(32, 9).toString('base64')
const other = createSecrets([OTHER_KEY])
const line =
  'SECRET_KEY: it opens no secret in this database; set the key that sealed them, see /docs/deploying#secret-key'

t.test('worker with a SECRET_KEY that opens no secret in the database', async (t) => {
  const { url, sql } = await createDatabase()
  const organisation = await createOrganisation(sql)
  const keysIn = async () => (await sql`select from app.sealing_keys`).length
  const startWorker = () => startTestService(url, { roles: ['worker'], secrets: other })
  await (await startTestService(url, { roles: ['api'] })).stop()

  await t.test('starts while the database has no secret', async () => {
    await (await startWorker()).stop()
  })

  const { id } = await createEndpoint(sql, organisation)
  await sql`delete from app.sealing_keys k using app.webhook_endpoints p
    where split_part(p.secret, '.', 1) <> k.id::text`
  const { sealed } = (await sql`select private_key as sealed from app.sealing_keys`)[0] ?? {}
  t.ok(other.open(sealed), 'the key of the last start is in use')
  const third = createSecrets([Buffer.alloc(32, 10).toString('base64')])

  await t.test(
    'exits with one line if the database has a secret, and creates no key',
    async (t) => {
      await t.rejects(
        startTestService(url, { roles: ['api', 'worker'], secrets: third }),
        new SetupError(line),
      )
      t.equal(await keysIn(), 1)
      const SECRET_KEY = Buffer.alloc(32, 11).toString('base64')
      t.same(await runCommand(['start'], { DATABASE_URL: await serviceUrl(url), SECRET_KEY }), {
        code: 1,
        stdout: '',
        stderr: `${line}\n`,
      })
    },
  )

  await t.test(
    'starts after an API started with that key and an endpoint got a new secret',
    async (t) => {
      await (await startTestService(url, { roles: ['api'], secrets: third })).stop()
      await sql`select ops.rotate_webhook_secret(${id})`
      await (await startTestService(url, { roles: ['worker'], secrets: third })).stop()
      t.equal(await keysIn(), 2)
    },
  )
})

t.test('worker with a SECRET_KEY that opens no DKIM key of a relay: exits', async (t) => {
  const { url, sql } = await createDatabase()
  const { domain } = await createOrganisation(sql)
  await addDkimKeys(sql, { domain, dkimZone: 'dkim.zone', values: ['k=rsa; p='] })
  await sql`update app.dkim_keys set private_key = ${other.seal('a key')}`
  await t.rejects(startTestService(url, { roles: ['worker'] }), { message: line })
  await (await startTestService(url, { roles: ['worker'], secrets: other })).stop()
})
