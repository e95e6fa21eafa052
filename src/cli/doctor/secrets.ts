import type { Secrets } from '../../crypto/secrets.ts'
import type { Sql } from '../../db/client.ts'
import type { Check } from './check.ts'

/** Checks that SECRET_KEY opens the secrets in the database, which must be of this version. */
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
    await checkWebhookSecrets(sql, secrets),
    ...(signsHere ? [await checkDkimKeys(sql, secrets)] : []),
    ...(secrets.keyIds.length > 1 ? [await checkOlderKeys(sql, secrets)] : []),
  ]
}

/** Checks that SECRET_KEY opens the DKIM keys, active or next, that sign mail through a relay. */
async function checkDkimKeys(sql: Sql, secrets: Secrets): Promise<Check> {
  const keys = (await dkimKeys(sql)).filter((key) => secrets.keyOf(key.privateKey) === null)
  const unopened = new Set(keys.map(({ name }) => name))
  const [first] = unopened
  return {
    name: 'DKIM keys',
    ok: unopened.size === 0,
    hint: `domains with DKIM keys that SECRET_KEY does not open: ${unopened.size}, ${first} the first; their mail waits. Append the key that sealed them to SECRET_KEY, after a comma; if it is lost, rotate each domain twice: select ops.rotate_dkim('${first}')`,
  }
}

/** Reports which of the older keys in SECRET_KEY are still needed. */
async function checkOlderKeys(sql: Sql, secrets: Secrets): Promise<Check> {
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

/** Checks that the keys in SECRET_KEY include those that sealed the signing secrets of webhook endpoints. */
async function checkWebhookSecrets(sql: Sql, secrets: Secrets): Promise<Check> {
  const endpoints = await sql<{ id: string }[]>`
    select core.encode_id('we', p.id) as id from app.webhook_endpoints p
    where p.secret_sealed_by <> all (${[...secrets.keyIds]}::text[])
    order by p.id`
  const [first] = endpoints
  return {
    name: 'webhook secrets',
    ok: !first,
    hint: `endpoints whose secrets SECRET_KEY does not open: ${endpoints.length}; append the previous key to SECRET_KEY, after a comma, or create new secrets: select ops.rotate_webhook_secret('${first?.id}')`,
  }
}
