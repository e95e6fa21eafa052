import { statfs } from 'node:fs/promises'
import type { Config } from '../../config/index.ts'
import type { Secrets } from '../../crypto/secrets.ts'
import { lackOf } from '../../db/availability.ts'
import { caller } from '../../db/call.ts'
import { connect, SERVICE_ROLE, type Sql } from '../../db/client.ts'
import { connectionProblem } from '../../db/connection-problem.ts'
import { currentLogin } from '../../db/login.ts'
import { codeAge } from '../../db/migrate/code-age.ts'
import { readOnlyProblem } from '../../db/read-only.ts'
import { checkServer } from '../../db/server.ts'
import { withoutBlanks } from '../../domains/check-records.ts'
import { createResolver } from '../../domains/resolver.ts'
import { createEmailProvider, createSmsProvider } from '../../providers/index.ts'
import { createLog } from '../../telemetry/log.ts'
import { VERSION } from '../../telemetry/version.ts'
import type { Check } from './check.ts'
import { checkSecrets } from './secrets.ts'

const MAKE_WRITABLE = 'use a server that takes writes, see /docs/operations#readiness'

const MIN_FREE_BYTES = 1024 ** 3

/** Checks everything that the service needs. */
export async function runChecks(
  sql: Sql,
  config: Config,
  secrets: Secrets | null,
): Promise<Check[]> {
  const problem = await checkServer(sql).then(
    () => null,
    (error) => connectionProblem(error) ?? `${error.message}`,
  )
  if (problem !== null) {
    const setting = config.migrateDatabaseUrl ? 'MIGRATE_DATABASE_URL' : 'DATABASE_URL'
    return [{ name: 'database', ok: false, hint: `${setting}: ${problem}` }]
  }
  const readOnly = await readOnlyProblem(sql)
  if (readOnly !== null) {
    // Without writes there are no heartbeats and no runs, and further checks would report the processes.
    return [{ name: 'database', ok: false, hint: `${readOnly}: ${MAKE_WRITABLE}` }]
  }
  const checks: Check[] = [{ name: 'database', ok: true, hint: '' }]
  checks.push(...(await checkLogin(sql, config)))
  if (!(await currentLogin(sql)).isOwner) {
    const hint = 'set MIGRATE_DATABASE_URL to the address of the owner: the other checks need it'
    return [...checks, { name: 'owner', ok: false, hint }]
  }
  const age = await codeAge(sql)
  const isCurrent = age === 'current'
  checks.push({
    name: 'schema',
    ok: isCurrent,
    hint:
      age === 'newer'
        ? 'the database is of a newer version: start that version, or run "npm run migrate" of this one to go back, see /docs/deployment#downgrade'
        : 'run "npm run migrate"',
  })

  const roles = await sql<{ rolname: string }[]>`
    select rolname from pg_roles
    where rolname in ('postgram_service', 'postgram_operator', 'postgram_report')`
  checks.push({ name: 'roles', ok: roles.length === 3, hint: 'run "npm run migrate"' })

  if (isCurrent) {
    checks.push(await checkSpace(sql))
    checks.push(
      ...(await sql<Check[]>`
        select name, ok, coalesce(translate(hint, chr(10), ' '), '') as hint, severity
        from ops.checks`),
    )
    checks.push(await checkVersion(sql))
  }
  if (secrets && config.email.provider !== 'sandbox') {
    checks.push(...(await checkEmail(sql, config, secrets)))
  }
  if (isCurrent || !secrets) {
    checks.push(...(await checkSecrets(sql, secrets, config.email.provider === 'smtp')))
  }
  const hasReal = config.email.provider !== 'sandbox' || config.sms.provider !== 'sandbox'
  if (config.webhookAllowPrivate && hasReal) {
    checks.push({
      name: 'webhook addresses',
      ok: false,
      hint: 'unset WEBHOOK_ALLOW_PRIVATE, which is for tests: with it, webhook endpoints may have addresses in this network',
    })
  }
  if (config.sms.provider !== 'sandbox') checks.push(await checkSms(sql, config))
  if (isCurrent) checks.push(...(await checkDns(sql, config)))
  if (config.isEmbedded) {
    const disk = await statfs(config.dataFolder)
    checks.push({
      name: 'disk',
      ok: disk.bavail * disk.bsize > MIN_FREE_BYTES,
      hint: `less than 1 GB is free on the disk of ${config.dataFolder}: free some space`,
    })
  }
  return checks
}

/** Checks that the service can use its login, and in production that the login has no other rights. */
async function checkLogin(sql: Sql, config: Config): Promise<Check[]> {
  const { databaseUrl, migrateDatabaseUrl, isProduction } = config
  if (databaseUrl === null) return []
  const name = 'service login'
  const own = migrateDatabaseUrl === null ? null : connect(databaseUrl, { max: 1 })
  try {
    if (own) await checkServer(own)
    const { name: login, excess } = await currentLogin(own ?? sql)
    if (isProduction && excess !== null) {
      const hint = `${login} ${excess}: set DATABASE_URL to a login without these rights, see /docs/deployment#database-logins`
      return [{ name, ok: false, hint, severity: 'warning' }]
    }
    const asService = connect(databaseUrl, { max: 1, role: SERVICE_ROLE })
    const problem = await readOnlyProblem(asService).finally(() => asService.end())
    return [{ name, ok: problem === null, hint: `${problem}: ${MAKE_WRITABLE}` }]
  } catch (error) {
    const problem = connectionProblem(error)
    if (problem === null) throw error
    return [{ name, ok: false, hint: `DATABASE_URL: ${problem}` }]
  } finally {
    await own?.end()
  }
}

/** Checks that the server has room for more data. */
async function checkSpace(sql: Sql): Promise<Check> {
  const name = 'disk space'
  try {
    await sql`select api.check_space()`
    return { name, ok: true, hint: '' }
  } catch (error) {
    const lack = lackOf(error)
    const { message } = error as Error
    return { name, ok: false, hint: lack ? `${lack}: ${message}` : message }
  }
}

async function checkEmail(sql: Sql, config: Config, secrets: Secrets): Promise<Check[]> {
  const provider = createEmailProvider({ ...config, call: caller(sql), secrets })
  const problem = await provider.check()
  await provider.close()
  return [
    { name: 'email provider', ok: problem === null, hint: problem ?? '' },
    {
      name: 'unsubscribe links',
      ok: config.publicUrl?.startsWith('https://') ?? false,
      hint: 'set PUBLIC_URL to an https address, which one-click unsubscribe needs (RFC 8058)',
    },
  ]
}

async function checkSms(sql: Sql, config: Config): Promise<Check> {
  const log = createLog('silent')
  const provider = createSmsProvider({ ...config, call: caller(sql), listener: null, log })
  const problem = await provider.check()
  await provider.close()
  return { name: 'SMS provider', ok: problem === null, hint: problem ?? '' }
}

/** Compares the version of running processes with this one; ops.checks compares them with each other. */
async function checkVersion(sql: Sql): Promise<Check> {
  const others = await sql<{ version: string }[]>`
    select distinct p.version from ops.processes p where p.is_alive and p.version <> ${VERSION}
    order by p.version`
  const named = others.map(({ version }) => version).join(', ')
  return {
    name: 'version',
    ok: others.length === 0,
    hint: `this command is of version ${VERSION}, and processes of version ${named} run: restart the older ones, one after the other`,
    severity: 'warning',
    note: VERSION,
  }
}

/** Checks that the resolvers respond, and that a DKIM key that signs is found where customers' records point. */
async function checkDns(sql: Sql, config: Config): Promise<Check[]> {
  const [key] = await sql<{ host: string; value: string }[]>`
    select k.host, k.value from app.dkim_keys k where k.state = 'active' order by k.created_at desc limit 1`
  const resolver = createResolver({ servers: config.dnsServers, hasSandbox: config.hasSandboxDns })
  if (!key || resolver.isSandbox(key.host)) return []
  const texts = await resolver.look(key.host, 'TXT').catch(() => null)
  const isFound = texts?.some((text) => withoutBlanks(text) === withoutBlanks(key.value)) ?? false
  return [
    {
      name: 'resolver',
      ok: texts !== null,
      hint: 'the resolvers do not respond for DKIM_ZONE: check DNS_SERVERS',
    },
    {
      name: 'DKIM zone',
      ok: isFound,
      hint: `the TXT record of ${key.host} differs from ops.dns_zone: update the zone, see /docs/email-providers#check-the-zone`,
    },
  ]
}
