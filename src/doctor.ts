import { statfs } from 'node:fs/promises'
import type { Config } from './config.ts'
import { lackOf } from './db/availability.ts'
import { caller } from './db/call.ts'
import { connect, SERVICE_ROLE, type Sql } from './db/client.ts'
import { codeAge } from './db/code-age.ts'
import { connectionProblem } from './db/connection-problem.ts'
import { currentLogin } from './db/login.ts'
import { readOnlyProblem } from './db/read-only.ts'
import { checkServer } from './db/server.ts'
import { withoutBlanks } from './domains/check-records.ts'
import { createResolver } from './domains/resolver.ts'
import { createLog } from './log.ts'
import { createEmailProvider, createSmsProvider } from './providers/index.ts'
import type { Secrets } from './secrets.ts'
import { VERSION } from './version.ts'
import { isOpenedBy } from './webhooks/secrets.ts'

export type Check = {
  what: string
  isWell: boolean
  /** What is wrong if it is not well, and what to do. */
  cure: string
  /** How severe it is when it is not well; a problem when absent. */
  severity?: 'problem' | 'warning'
  /** What is worth knowing when it is well. */
  note?: string
}

const MAKE_WRITABLE = 'use a server that takes writes, see /docs/operating#readiness'

const MIN_FREE_BYTES = 1024 ** 3

/** Looks at all that the service needs: a line each, with the cure where something is wrong. */
export async function examine(sql: Sql, config: Config, secrets: Secrets | null): Promise<Check[]> {
  const problem = await checkServer(sql).then(
    () => null,
    (error) => connectionProblem(error) ?? `${error.message}`,
  )
  if (problem !== null) {
    const setting = config.migrateDatabaseUrl ? 'MIGRATE_DATABASE_URL' : 'DATABASE_URL'
    return [{ what: 'database', isWell: false, cure: `${setting}: ${problem}` }]
  }
  const readOnly = await readOnlyProblem(sql)
  if (readOnly !== null) {
    // Without writes nothing beats or runs, and further checks would blame the processes.
    return [{ what: 'database', isWell: false, cure: `${readOnly}: ${MAKE_WRITABLE}` }]
  }
  const checks: Check[] = [{ what: 'database', isWell: true, cure: '' }]
  checks.push(...(await examineLogin(sql, config)))
  if (!(await currentLogin(sql)).isOwner) {
    const cure =
      'set MIGRATE_DATABASE_URL to the address of the owner, so that the rest can be checked'
    return [...checks, { what: 'owner', isWell: false, cure }]
  }
  const age = await codeAge(sql)
  const isCurrent = age === 'current'
  checks.push({
    what: 'schema',
    isWell: isCurrent,
    cure:
      age === 'newer'
        ? 'the database is of a newer version: start that one, or go back with "npm run migrate" of this one, see /docs/operating#upgrade'
        : 'run "npm run migrate"',
  })

  const roles = await sql<{ rolname: string }[]>`
    select rolname from pg_roles
    where rolname in ('postgram_service', 'postgram_operator', 'postgram_report')`
  checks.push({ what: 'roles', isWell: roles.length === 3, cure: 'run "npm run migrate"' })

  if (isCurrent) {
    checks.push(await examineSpace(sql))
    checks.push(...(await sql<Check[]>`select what, is_well, cure, severity from ops.checks`))
    checks.push(await examineVersion(sql))
  }
  if (!secrets) {
    const cure = 'set SECRET_KEY; make one with "openssl rand -base64 32"'
    checks.push({ what: 'secret key', isWell: false, cure })
  } else {
    if (config.email.provider !== 'sandbox') {
      checks.push(...(await examineEmail(sql, config, secrets)))
    }
    if (isCurrent) {
      checks.push(await examineSigning(sql, secrets))
      if (config.email.provider === 'smtp') checks.push(await examineDkimKeys(sql, secrets))
      if (secrets.keys > 1) checks.push(await examineOlderKeys(sql, secrets))
    }
  }
  const hasReal = config.email.provider !== 'sandbox' || config.sms.provider !== 'sandbox'
  if (config.webhookAllowPrivate && hasReal) {
    checks.push({
      what: 'webhook addresses',
      isWell: false,
      cure: 'WEBHOOK_ALLOW_PRIVATE is for tests: with it, endpoints reach into this network',
    })
  }
  if (config.sms.provider !== 'sandbox') checks.push(await examineSms(sql, config))
  if (isCurrent) checks.push(...(await examineDns(sql, config)))
  if (config.isEmbedded) {
    const disk = await statfs(config.dataFolder)
    checks.push({
      what: 'disk',
      isWell: disk.bavail * disk.bsize > MIN_FREE_BYTES,
      cure: `less than 1 GB is free where ${config.dataFolder} lies`,
    })
  }
  return checks
}

/** Whether the service can use its own login, and in production whether that has no other rights. */
async function examineLogin(sql: Sql, config: Config): Promise<Check[]> {
  const { databaseUrl, migrateDatabaseUrl, isProduction } = config
  if (databaseUrl === null) return []
  const what = 'service login'
  const own = migrateDatabaseUrl === null ? null : connect(databaseUrl, { max: 1 })
  try {
    if (own) await checkServer(own)
    const { name, excess } = await currentLogin(own ?? sql)
    if (isProduction && excess !== null) {
      const cure = `${name} ${excess}: give DATABASE_URL a login of its own, see /docs/deploying#logins`
      return [{ what, isWell: false, cure, severity: 'warning' }]
    }
    const asService = connect(databaseUrl, { max: 1, role: SERVICE_ROLE })
    const problem = await readOnlyProblem(asService).finally(() => asService.end())
    return [{ what, isWell: problem === null, cure: `${problem}: ${MAKE_WRITABLE}` }]
  } catch (error) {
    const problem = connectionProblem(error)
    if (problem === null) throw error
    return [{ what, isWell: false, cure: `DATABASE_URL: ${problem}` }]
  } finally {
    await own?.end()
  }
}

/** Whether the server has room for more data. */
async function examineSpace(sql: Sql): Promise<Check> {
  const what = 'disk space'
  try {
    await sql`select api.check_space()`
    return { what, isWell: true, cure: '' }
  } catch (error) {
    const lack = lackOf(error)
    return { what, isWell: lack === undefined, cure: `${lack}: ${(error as Error).message}` }
  }
}

async function examineEmail(sql: Sql, config: Config, secrets: Secrets): Promise<Check[]> {
  const provider = createEmailProvider({ ...config, call: caller(sql), secrets })
  const problem = await provider.examine()
  await provider.close()
  return [
    { what: 'email provider', isWell: problem === null, cure: problem ?? '' },
    {
      what: 'unsubscribe links',
      isWell: config.publicUrl?.startsWith('https://') ?? false,
      cure: 'PUBLIC_URL must be https for one-click unsubscription (RFC 8058)',
    },
  ]
}

async function examineSms(sql: Sql, config: Config): Promise<Check> {
  const log = createLog('silent')
  const provider = createSmsProvider({ ...config, call: caller(sql), listener: null, log })
  const problem = await provider.examine()
  await provider.close()
  return { what: 'SMS provider', isWell: problem === null, cure: problem ?? '' }
}

/** Whether the processes that run are of this version; ops.checks compares them with each other. */
async function examineVersion(sql: Sql): Promise<Check> {
  const others = await sql<{ version: string }[]>`
    select distinct p.version from ops.processes p where p.is_alive and p.version <> ${VERSION}
    order by p.version`
  const named = others.map(({ version }) => version).join(', ')
  return {
    what: 'version',
    isWell: others.length === 0,
    cure: `this command is of version ${VERSION}, and processes of version ${named} run: restart those that are older, one after the other`,
    severity: 'warning',
    note: VERSION,
  }
}

/** Whether SECRET_KEY opens the DKIM keys with which mail through a relay is signed, now or next. */
async function examineDkimKeys(sql: Sql, secrets: Secrets): Promise<Check> {
  const shut = new Set<string>()
  for (const { name, privateKey } of await dkimKeys(sql)) {
    if (!isOpenedBy(secrets, privateKey)) shut.add(name)
  }
  const [first] = shut
  return {
    what: 'DKIM keys',
    isWell: shut.size === 0,
    cure: `domains with DKIM keys that SECRET_KEY does not open: ${shut.size}, ${first} the first; their mail waits. Set the SECRET_KEY of that time behind the present one, after a comma; if it is lost, rotate each domain twice: select ops.rotate_dkim('${first}')`,
  }
}

/** Which of the older keys in SECRET_KEY still open something in the database. */
async function examineOlderKeys(sql: Sql, secrets: Secrets): Promise<Check> {
  const sealing = await sql<{ privateKey: string }[]>`
    select k.private_key from app.sealing_keys k
    where exists (
      select from app.webhook_endpoints p where split_part(p.secret, '.', 1) = k.id::text)`
  const domains = Array.from({ length: secrets.keys }, () => new Set<string>())
  for (const { name, privateKey } of await dkimKeys(sql)) {
    domains[secrets.keyOf(privateKey) ?? -1]?.add(name)
  }
  const notes = domains.slice(1).map((names, n) => {
    const opensWebhooks = sealing.some(({ privateKey }) => secrets.keyOf(privateKey) === n + 1)
    const needs = [
      ...(names.size > 0 ? [`DKIM keys (domains: ${names.size})`] : []),
      ...(opensWebhooks ? ['webhook secrets, until a process starts'] : []),
    ]
    return needs.length > 0
      ? `key ${n + 2} is needed for ${needs.join(' and ')}`
      : `key ${n + 2} opens nothing in the database; without it, unsubscribe links that it signed stop working`
  })
  return { what: 'older secret keys', isWell: true, cure: '', note: notes.join('; ') }
}

const dkimKeys = (sql: Sql) => sql<{ name: string; privateKey: string }[]>`
  select d.name, k.private_key
  from app.dkim_keys k
  join app.domains d on d.id = k.domain_id
  where k.private_key is not null and k.state in ('active', 'next')
  order by d.name`

/** Whether SECRET_KEY opens what webhook endpoints' signing secrets were sealed with. */
async function examineSigning(sql: Sql, secrets: Secrets): Promise<Check> {
  const keys = await sql<{ id: string; privateKey: string }[]>`
    select k.id, k.private_key from app.sealing_keys k`
  const shut = keys.filter(({ privateKey }) => !isOpenedBy(secrets, privateKey)).map(({ id }) => id)
  const endpoints = await sql<{ id: string }[]>`
    select core.encode_id('we', p.id) as id from app.webhook_endpoints p
    where split_part(p.secret, '.', 1) = any (${shut}::text[]) or not exists (
      select from app.sealing_keys k where k.id::text = split_part(p.secret, '.', 1))
    order by p.id`
  const [first] = endpoints
  return {
    what: 'webhook secrets',
    isWell: !first,
    cure: `endpoints whose secrets SECRET_KEY does not open: ${endpoints.length}; set the one before behind it, after a comma, or make new ones: select ops.rotate_webhook_secret('${first?.id}')`,
  }
}

/** Whether resolvers answer, and a key that signs is found where customers' records point. */
async function examineDns(sql: Sql, config: Config): Promise<Check[]> {
  const [key] = await sql<{ host: string; value: string }[]>`
    select k.host, k.value from app.dkim_keys k where k.state = 'active' order by k.created_at desc limit 1`
  const resolver = createResolver({ servers: config.dnsServers, hasSandbox: config.hasSandboxDns })
  if (!key || resolver.isSandbox(key.host)) return []
  const texts = await resolver.look(key.host, 'TXT').catch(() => null)
  const isFound = texts?.some((text) => withoutBlanks(text) === withoutBlanks(key.value)) ?? false
  return [
    {
      what: 'resolver',
      isWell: texts !== null,
      cure: 'no answer about DKIM_ZONE: check DNS_SERVERS',
    },
    {
      what: 'DKIM zone',
      isWell: isFound,
      cure: `${key.host} is not served as ops.dns_zone has it: see /docs/real-email`,
    },
  ]
}
