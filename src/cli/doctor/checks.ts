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
import { ownerVariable } from '../database.ts'
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
  if (problem !== null) return [checkOf('database', `${ownerVariable(config)}: ${problem}`)]
  // Without writes there are no heartbeats and no runs, and further checks would report the processes.
  const readOnly = await readOnlyProblem(sql)
  const checks = [checkOf('database', readOnly && `${readOnly}: ${MAKE_WRITABLE}`)]
  if (readOnly !== null) return checks
  checks.push(...(await checkLogin(sql, config)))
  if (!(await currentLogin(sql)).isOwner) {
    const hint = 'set MIGRATE_DATABASE_URL to the address of the owner: the other checks need it'
    return [...checks, checkOf('owner', hint)]
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
    const hint =
      'unset WEBHOOK_ALLOW_PRIVATE, which is for tests: with it, webhook endpoints may have addresses in this network'
    checks.push(checkOf('webhook addresses', hint))
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

/** Returns a check that fails if there is a problem. */
function checkOf(name: string, problem: string | null): Check {
  return { name, ok: problem === null, hint: problem ?? '' }
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
    return [checkOf(name, problem && `${problem}: ${MAKE_WRITABLE}`)]
  } catch (error) {
    const problem = connectionProblem(error)
    if (problem === null) throw error
    return [checkOf(name, `DATABASE_URL: ${problem}`)]
  } finally {
    await own?.end()
  }
}

/** Checks that the server has room for more data. */
async function checkSpace(sql: Sql): Promise<Check> {
  const problem = await sql`select api.check_space()`.then(
    () => null,
    (error) => {
      const lack = lackOf(error)
      return lack ? `${lack}: ${error.message}` : `${error.message}`
    },
  )
  return checkOf('disk space', problem)
}

async function checkEmail(sql: Sql, config: Config, secrets: Secrets): Promise<Check[]> {
  const provider = createEmailProvider({ ...config, call: caller(sql), secrets })
  const problem = await provider.check()
  await provider.close()
  return [
    checkOf('email provider', problem),
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
  return checkOf('SMS provider', problem)
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
