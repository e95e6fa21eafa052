import t from 'tap'
import { runChecks } from '../../src/cli/doctor/checks.ts'
import { readConfig } from '../../src/config/index.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { VERSION } from '../../src/telemetry/version.ts'
import { createSealer } from '../../src/webhooks/secrets.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startMailgun } from '../fixtures/mailgun.ts'
import {
  addDkimKeys,
  freeAddress,
  newDkimValue,
  noNsd,
  startNsd,
  startSilence,
} from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { secrets } from '../fixtures/service.ts'
import { createEndpoint } from '../fixtures/webhooks.ts'

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

/** Returns the hints of the doctor's checks by name; null for a check that is ok. */
const hints = (env: Record<string, string>, isKeyed = true) =>
  hintsBy(env, isKeyed ? secrets : null)

async function hintsBy(env: Record<string, string>, keys: typeof secrets | null) {
  const config = readConfig({ ...settings, ...env }, { isServing: false })
  const checks = await runChecks(sql, config, keys)
  return Object.fromEntries(checks.map(({ name, ok, hint }) => [name, ok ? null : hint]))
}

t.test('doctor: reports a provider that accepts the credentials as ok', async (t) => {
  t.match(await hints({}), { 'email provider': null, 'unsubscribe links': null })
})

t.test(
  'doctor: reports an email provider that refuses the credentials or cannot be reached',
  async (t) => {
    const refused = await hints({ MAILGUN_API_KEY: 'key-wrong' })
    t.match(refused['email provider'], /does not accept MAILGUN_API_KEY/)
    t.notMatch(refused['email provider'], /key-wrong/)
    const gone = await hints({ MAILGUN_API_BASE: `http://${await freeAddress()}` })
    t.match(gone['email provider'], /cannot be reached: ECONNREFUSED/)
    const relay = await hints({
      EMAIL_PROVIDER: 'smtp',
      SMTP_URL: 'smtp://me:hidden@127.0.0.1:1?name=x.example',
    })
    t.match(
      relay['email provider'],
      /^the relay of SMTP_URL cannot be reached \(ECONNREFUSED\): check host and port/,
    )
    t.notMatch(relay['email provider'], /hidden/)
  },
)

t.test(
  'doctor: reports a PUBLIC_URL without https, which one-click unsubscribe needs',
  async (t) => {
    const { 'unsubscribe links': hint } = await hints({ PUBLIC_URL: 'http://postgram.test' })
    t.match(hint, /set PUBLIC_URL to an https address/)
  },
)

t.test('doctor: skips the check of the email provider without a SECRET_KEY', async (t) => {
  const checks = await hints({}, false)
  t.match(checks['secret key'], /set SECRET_KEY/)
  t.notOk('email provider' in checks)
})

t.test('doctor: does not check sandbox providers', async (t) => {
  const checks = await hints({ EMAIL_PROVIDER: 'sandbox', SMS_PROVIDER: 'sandbox' })
  t.notOk('email provider' in checks)
  t.notOk('SMS provider' in checks)
})

t.test('doctor: reports an SMSC that cannot be reached, without its password', async (t) => {
  const gone = await hints({
    SMS_PROVIDER: 'smpp',
    SMPP_URL: 'smpp://me:hidden@127.0.0.1:1',
  })
  t.match(gone['SMS provider'], /SMPP_URL.*ECONNREFUSED/)
  t.notMatch(gone['SMS provider'], /hidden/)
})

t.test(
  'doctor: reports a DKIM key that is not found where the records point',
  { skip: noNsd },
  async (t) => {
    t.notOk('DKIM zone' in (await hints({})), 'there are no keys yet')
    const values = [newDkimValue(), newDkimValue()]
    await addDkimKeys(sql, { domain, dkimZone: settings.DKIM_ZONE, values })

    const silent = await hints({ DNS_SERVERS: await startSilence() })
    t.match(silent, { resolver: /check DNS_SERVERS/, 'DKIM zone': /differs from ops\.dns_zone/ })

    const names = await startNsd({ [settings.DKIM_ZONE]: '' })
    const empty = await hints({ DNS_SERVERS: names.address })
    t.match(empty, {
      resolver: null,
      'DKIM zone': /^the TXT record of pg1\..*dkim\.service\.zone differs/,
    })

    const [line] = await sql`select line from ops.dns_zone where name like 'pg1.%'`
    const served = await startNsd({ [settings.DKIM_ZONE]: line?.line })
    t.match(await hints({ DNS_SERVERS: served.address }), { resolver: null, 'DKIM zone': null })
  },
)

t.test('doctor: names an endpoint whose signing secret SECRET_KEY does not open', async (t) => {
  const call = caller(sql)
  const { id } = await createEndpoint(sql, organisation)
  t.match(await hints({}), { 'webhook secrets': null }, 'a secret that is not sealed needs no key')
  await createSealer(call, createSecrets([Buffer.alloc(32, 6).toString('base64')]))()
  const { 'webhook secrets': hint } = await hints({})
  t.match(hint, new RegExp(`does not open: 1;.*select ops.rotate_webhook_secret\\('${id}'\\)$`))

  await sql`select ops.rotate_webhook_secret(${id})`
  await createSealer(call, secrets)()
  t.match(await hints({}), { 'webhook secrets': null })
})

t.test('doctor: names domains with DKIM keys that SECRET_KEY does not open', async (t) => {
  const relay = { EMAIL_PROVIDER: 'smtp', SMTP_URL: 'smtp://127.0.0.1:1?name=x.example' }
  const lost = createSecrets([Buffer.alloc(32, 9).toString('base64')])
  const seal = (state: string, by: typeof secrets) => sql`
    update app.dkim_keys set private_key = ${by.seal('a key')} where state = ${state}::app.dkim_state`
  await sql`delete from app.dkim_keys`
  const values = [newDkimValue(), newDkimValue(), newDkimValue()]
  await addDkimKeys(sql, { domain, dkimZone: settings.DKIM_ZONE, values })
  const env = { ...relay, DNS_SERVERS: 'sandbox' }
  const hint = async () => (await hintsBy(env, secrets))['DKIM keys']
  await seal('active', secrets)
  await seal('next', secrets)
  await seal('retired', lost)
  t.equal(await hint(), null, 'a retired key signs no mail')
  await seal('next', lost)
  t.match(
    await hint(),
    new RegExp(`does not open: 1, ${domain} the first;.*ops.rotate_dkim\\('${domain}'\\)$`),
  )
  t.notOk('DKIM keys' in (await hintsBy({}, secrets)), 'the provider has its own keys')
})

t.test('doctor: lists the older keys of SECRET_KEY that are still needed', async (t) => {
  const [present, used, unused] = [7, 9, 10].map((n) => Buffer.alloc(32, n).toString('base64'))
  const all = createSecrets([present ?? '', used ?? '', unused ?? ''])
  const noteOf = async (by: typeof secrets) => {
    const config = readConfig({ ...settings, DNS_SERVERS: 'sandbox' }, { isServing: false })
    const checks = await runChecks(sql, config, by)
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
  await createEndpoint(sql, organisation)
  await createSealer(caller(sql), createSecrets([used ?? '']))()
  t.match(await noteOf(all), { note: /^key 2 is needed for webhook secrets, until / })
  await createSealer(caller(sql), all)()
  t.match(await noteOf(all), { note: `key 2 ${free}; key 3 ${free}` }, 'until they are resealed')
  t.equal(await noteOf(secrets), undefined, 'there is no older key')
})

t.test('doctor: warns when processes of another version run', async (t) => {
  const session = connect(url, { max: 1 })
  t.teardown(() => session.end())
  const version = async () => {
    const config = readConfig(settings, { isServing: false })
    const checks = await runChecks(sql, config, null)
    return checks.find(({ name }) => name === 'version')
  }
  await session`select api.record_heartbeat('process-of-this', '{api}', 'here', 1, ${VERSION}, now())`
  t.match(await version(), { ok: true, note: VERSION })
  await session`select api.deregister('process-of-this')`
  await session`select api.record_heartbeat('process-of-that', '{api}', 'here', 1, '9.8.7', now())`
  t.match(await version(), { ok: false, severity: 'warning', hint: /of version 9\.8\.7 run/ })
  await session`select api.deregister('process-of-that')`
})

t.test('doctor: reports any error of the check for disk space', async (t) => {
  const limited = connect(url, { max: 1 })
  t.teardown(() => limited.end())
  await limited`set temp_file_limit = '7MB'`
  const checks = await runChecks(limited, readConfig(settings, { isServing: false }), null)
  t.match(
    checks.find(({ name }) => name === 'disk space'),
    { ok: false, hint: /^temporary file size exceeds "?temp_file_limit"? \(7168kB\)$/ },
  )
  t.match(await hints({}, false), { 'disk space': null })
})

t.test('doctor: reports WEBHOOK_ALLOW_PRIVATE with a real provider', async (t) => {
  const env = { WEBHOOK_ALLOW_PRIVATE: 'true' }
  t.match((await hints(env))['webhook addresses'], /^unset WEBHOOK_ALLOW_PRIVATE/)
  t.notOk('webhook addresses' in (await hints({})))
  t.notOk('webhook addresses' in (await hints({ ...env, EMAIL_PROVIDER: 'sandbox' })))
})
