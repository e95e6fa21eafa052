import t from 'tap'
import { examine } from '../../src/cli/doctor/checks.ts'
import { readConfig } from '../../src/config/index.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { VERSION } from '../../src/telemetry/version.ts'
import { prepareSealing } from '../../src/webhooks/secrets.ts'
import { createDatabase } from '../fixtures/database.ts'
import { addDkimKeys, newDkimValue } from '../fixtures/dkim-keys.ts'
import { freeAddress, noNsd, startNsd, startSilence } from '../fixtures/dns-server.ts'
import { startMailgun } from '../fixtures/mailgun-server.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { secrets } from '../fixtures/service.ts'
import { createEndpoint } from '../fixtures/webhook-events.ts'

const { url, sql } = await createDatabase()
const organisation = await createOrganisation(sql)
const { domain } = organisation
const mailgun = await startMailgun()

const settings = {
  DATABASE_URL: url,
  SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
  PUBLIC_URL: 'https://postgram.test',
  EMAIL_PROVIDER: 'mailgun',
  MAILGUN_API_KEY: mailgun.account.apiKey,
  MAILGUN_API_BASE: mailgun.account.apiBase,
  MAILGUN_WEBHOOK_SIGNING_KEY: mailgun.account.signingKey,
  SYSTEM_FROM: 'postgram@service.example',
  DKIM_ZONE: 'dkim.service.zone',
}

/** What it says of these things, by name they are: null when all is well, else the hint. */
const said = (env: Record<string, string>, isKeyed = true) => saidBy(env, isKeyed ? secrets : null)

async function saidBy(env: Record<string, string>, keys: typeof secrets | null) {
  const config = readConfig({ ...settings, ...env }, { isServing: false })
  const checks = await examine(sql, config, keys)
  return Object.fromEntries(checks.map(({ name, ok, hint }) => [name, ok ? null : hint]))
}

t.test('a provider that lets us in is well', async (t) => {
  t.match(await said({}), { 'email provider': null, 'unsubscribe links': null })
})

t.test('one that does not is not, and neither is one that cannot be reached', async (t) => {
  const refused = await said({ MAILGUN_API_KEY: 'key-wrong' })
  t.match(refused['email provider'], /does not accept MAILGUN_API_KEY/)
  t.notMatch(refused['email provider'], /key-wrong/)
  const gone = await said({ MAILGUN_API_BASE: `http://${await freeAddress()}` })
  t.match(gone['email provider'], /cannot be reached: ECONNREFUSED/)
  const relay = await said({
    EMAIL_PROVIDER: 'smtp',
    SMTP_URL: 'smtp://me:hidden@127.0.0.1:1?name=x.example',
  })
  t.match(
    relay['email provider'],
    /^the relay of SMTP_URL cannot be reached \(ECONNREFUSED\): check host and port/,
  )
  t.notMatch(relay['email provider'], /hidden/)
})

t.test('links for one click need https', async (t) => {
  const { 'unsubscribe links': hint } = await said({ PUBLIC_URL: 'http://postgram.test' })
  t.match(hint, /PUBLIC_URL must be https/)
})

t.test('without a secret key nothing of a provider is asked', async (t) => {
  const checks = await said({}, false)
  t.match(checks['secret key'], /set SECRET_KEY/)
  t.notOk('email provider' in checks)
})

t.test('the sandbox has nothing to be examined', async (t) => {
  const checks = await said({ EMAIL_PROVIDER: 'sandbox', SMS_PROVIDER: 'sandbox' })
  t.notOk('email provider' in checks)
  t.notOk('SMS provider' in checks)
})

t.test('an SMSC that cannot be reached is not well, and one that can is', async (t) => {
  const gone = await said({
    SMS_PROVIDER: 'smpp',
    SMPP_URL: 'smpp://me:hidden@127.0.0.1:1',
  })
  t.match(gone['SMS provider'], /SMPP_URL.*ECONNREFUSED/)
  t.notMatch(gone['SMS provider'], /hidden/)
})

t.test('a key that signs must be found where records point to', { skip: noNsd }, async (t) => {
  t.notOk('DKIM zone' in (await said({})), 'without keys there is nothing to find')
  const values = [newDkimValue(), newDkimValue()]
  await addDkimKeys(sql, { domain, dkimZone: settings.DKIM_ZONE, values })

  const silent = await said({ DNS_SERVERS: await startSilence() })
  t.match(silent, { resolver: /check DNS_SERVERS/, 'DKIM zone': /is not served/ })

  const names = await startNsd({ [settings.DKIM_ZONE]: '' })
  const empty = await said({ DNS_SERVERS: names.address })
  t.match(empty, { resolver: null, 'DKIM zone': /^pg1\..*dkim\.service\.zone is not served/ })

  const [line] = await sql`select line from ops.dns_zone where name like 'pg1.%'`
  const served = await startNsd({ [settings.DKIM_ZONE]: line?.line })
  t.match(await said({ DNS_SERVERS: served.address }), { resolver: null, 'DKIM zone': null })
})

t.test('signing secrets of webhooks must be opened by a SECRET_KEY that is set', async (t) => {
  const call = caller(sql)
  await prepareSealing(call, createSecrets([Buffer.alloc(32, 6).toString('base64')]))
  t.match(await said({}), { 'webhook secrets': null }, 'a key of which no endpoint is left is fine')
  const { id } = await createEndpoint(sql, organisation)
  const { 'webhook secrets': hint } = await said({})
  t.match(hint, new RegExp(`does not open: 1;.*select ops.rotate_webhook_secret\\('${id}'\\)$`))

  await prepareSealing(call, secrets)
  t.match((await said({}))['webhook secrets'], /does not open: 1;/)
  await sql`select ops.rotate_webhook_secret(${id})`
  t.match(await said({}), { 'webhook secrets': null })
})

t.test('the doctor names domains with DKIM keys that SECRET_KEY does not open', async (t) => {
  const relay = { EMAIL_PROVIDER: 'smtp', SMTP_URL: 'smtp://127.0.0.1:1?name=x.example' }
  const lost = createSecrets([Buffer.alloc(32, 9).toString('base64')])
  const seal = (state: string, by: typeof secrets) => sql`
    update app.dkim_keys set private_key = ${by.seal('a key')} where state = ${state}::app.dkim_state`
  await sql`delete from app.dkim_keys`
  const values = [newDkimValue(), newDkimValue(), newDkimValue()]
  await addDkimKeys(sql, { domain, dkimZone: settings.DKIM_ZONE, values })
  const env = { ...relay, DNS_SERVERS: 'sandbox' }
  const said = async () => (await saidBy(env, secrets))['DKIM keys']
  await seal('active', secrets)
  await seal('next', secrets)
  await seal('retired', lost)
  t.equal(await said(), null, 'a retired key signs nothing')
  await seal('next', lost)
  t.match(
    await said(),
    new RegExp(`does not open: 1, ${domain} the first;.*ops.rotate_dkim\\('${domain}'\\)$`),
  )
  t.notOk('DKIM keys' in (await saidBy({}, secrets)), 'a provider keeps its own')
})

t.test('the doctor says which older keys of SECRET_KEY are needed', async (t) => {
  const [present, used, unused] = [7, 9, 10].map((n) => Buffer.alloc(32, n).toString('base64'))
  const all = createSecrets([present ?? '', used ?? '', unused ?? ''])
  const noteOf = async (by: typeof secrets) => {
    const config = readConfig({ ...settings, DNS_SERVERS: 'sandbox' }, { isServing: false })
    const checks = await examine(sql, config, by)
    return checks.find(({ name }) => name === 'older secret keys')
  }
  const free =
    'opens nothing in the database; without it, unsubscribe links that it signed stop working'
  t.match(await noteOf(all), {
    ok: true,
    note: `key 2 is needed for DKIM keys (domains: 1); key 3 ${free}`,
  })
  await sql`update app.dkim_keys set private_key = ${all.seal('a key')} where state = 'next'`
  t.match(await noteOf(all), { ok: true, note: `key 2 ${free}; key 3 ${free}` })
  // Of the endpoint that was made above.
  await sql`update app.sealing_keys set private_key = ${createSecrets([used ?? '']).seal('a key')}`
  t.match(await noteOf(all), { note: /^key 2 is needed for webhook secrets, until / })
  t.equal(await noteOf(secrets), undefined, 'there is no older one')
})

t.test('the doctor warns when processes of another version run', async (t) => {
  const session = connect(url, { max: 1 })
  t.teardown(() => session.end())
  const version = async () => {
    const config = readConfig(settings, { isServing: false })
    const checks = await examine(sql, config, null)
    return checks.find(({ name }) => name === 'version')
  }
  await session`select api.beat('process-of-this', '{api}', 'here', 1, ${VERSION}, now())`
  t.match(await version(), { ok: true, note: VERSION })
  await session`select api.leave('process-of-this')`
  await session`select api.beat('process-of-that', '{api}', 'here', 1, '9.8.7', now())`
  t.match(await version(), { ok: false, severity: 'warning', hint: /of version 9\.8\.7 run/ })
  await session`select api.leave('process-of-that')`
})

t.test('the doctor reports any error of the check for disk space', async (t) => {
  const limited = connect(url, { max: 1 })
  t.teardown(() => limited.end())
  await limited`set temp_file_limit = '7MB'`
  const checks = await examine(limited, readConfig(settings, { isServing: false }), null)
  t.match(
    checks.find(({ name }) => name === 'disk space'),
    { ok: false, hint: /^temporary file size exceeds "?temp_file_limit"? \(7168kB\)$/ },
  )
  t.match(await said({}, false), { 'disk space': null })
})

t.test(
  'webhooks to private addresses are for tests, and said to be with a real provider',
  async (t) => {
    const env = { WEBHOOK_ALLOW_PRIVATE: 'true' }
    t.match((await said(env))['webhook addresses'], /^WEBHOOK_ALLOW_PRIVATE is for tests/)
    t.notOk('webhook addresses' in (await said({})))
    t.notOk('webhook addresses' in (await said({ ...env, EMAIL_PROVIDER: 'sandbox' })))
  },
)
