import type { Secrets } from '../../crypto/secrets.ts'
import type { Sql } from '../../db/client.ts'
import type { Check } from './check.ts'

/** Whether SECRET_KEY opens what is sealed in the database, which must be of this version. */
export async function checkSecrets(
  sql: Sql,
  secrets: Secrets | null,
  signsHere: boolean,
): Promise<Check[]> {
  if (!secrets) {
    const hint = 'set SECRET_KEY; make one with "openssl rand -base64 32"'
    return [{ name: 'secret key', ok: false, hint }]
  }
  return [
    await examineSigning(sql, secrets),
    ...(signsHere ? [await examineDkimKeys(sql, secrets)] : []),
    ...(secrets.keyIds.length > 1 ? [await examineOlderKeys(sql, secrets)] : []),
  ]
}

/** Whether SECRET_KEY opens the DKIM keys with which mail through a relay is signed, now or next. */
async function examineDkimKeys(sql: Sql, secrets: Secrets): Promise<Check> {
  const shut = new Set<string>()
  for (const { name, privateKey } of await dkimKeys(sql)) {
    if (secrets.keyOf(privateKey) === null) shut.add(name)
  }
  const [first] = shut
  return {
    name: 'DKIM keys',
    ok: shut.size === 0,
    hint: `domains with DKIM keys that SECRET_KEY does not open: ${shut.size}, ${first} the first; their mail waits. Set the SECRET_KEY of that time behind the present one, after a comma; if it is lost, rotate each domain twice: select ops.rotate_dkim('${first}')`,
  }
}

/** Which of the older keys in SECRET_KEY still open something in the database. */
async function examineOlderKeys(sql: Sql, secrets: Secrets): Promise<Check> {
  const inUse = await sql<{ keyId: string }[]>`
    select p.secret_sealed_by as key_id from app.webhook_endpoints p
    union
    select p.old_secret_sealed_by from app.webhook_endpoints p where p.old_secret_until > core.now()`
  const domains = secrets.keyIds.map(() => new Set<string>())
  for (const { name, privateKey } of await dkimKeys(sql)) {
    const key = secrets.keyOf(privateKey)
    if (key !== null) domains[key]?.add(name)
  }
  const notes = domains.slice(1).map((names, n) => {
    const opensWebhooks = inUse.some(({ keyId }) => keyId === secrets.keyIds[n + 1])
    const needs = [
      ...(names.size > 0 ? [`DKIM keys (domains: ${names.size})`] : []),
      ...(opensWebhooks
        ? ['webhook secrets, until the clock has sealed them with the first key (within a minute)']
        : []),
    ]
    return needs.length > 0
      ? `key ${n + 2} is needed for ${needs.join(' and ')}`
      : `key ${n + 2} opens nothing in the database; without it, unsubscribe links that it signed stop working`
  })
  return { name: 'older secret keys', ok: true, hint: '', note: notes.join('; ') }
}

const dkimKeys = (sql: Sql) => sql<{ name: string; privateKey: string }[]>`
  select d.name, k.private_key
  from app.dkim_keys k
  join app.domains d on d.id = k.domain_id
  where k.private_key is not null and k.state in ('active', 'next')
  order by d.name`

/** Whether the keys in SECRET_KEY include those that sealed the signing secrets of webhook endpoints. */
async function examineSigning(sql: Sql, secrets: Secrets): Promise<Check> {
  const endpoints = await sql<{ id: string }[]>`
    select core.encode_id('we', p.id) as id from app.webhook_endpoints p
    where p.secret_sealed_by <> all (${[...secrets.keyIds]}::text[])
    order by p.id`
  const [first] = endpoints
  return {
    name: 'webhook secrets',
    ok: !first,
    hint: `endpoints whose secrets SECRET_KEY does not open: ${endpoints.length}; add the SECRET_KEY of that time after the current one, after a comma, or rotate each secret: select ops.rotate_webhook_secret('${first?.id}')`,
  }
}
