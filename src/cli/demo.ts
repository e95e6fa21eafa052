import { join } from 'node:path'
import * as v from 'valibot'
import type { Sql } from '../db/client.ts'
import { keepOnce, readOr } from '../db/kept-file.ts'
import { codeAge, OLDER_DATABASE } from '../db/migrate/code-age.ts'
import { SetupError } from '../errors.ts'

const demoSchema = v.object({ organisation: v.string(), liveKey: v.string(), testKey: v.string() })

export type Demo = v.InferOutput<typeof demoSchema>

const DEMO_DOMAIN = 'sandbox.postgram.test'

/** The owner of the demo organisation of an embedded database, who is an operator as well. */
export const DEMO_OWNER = `owner@${DEMO_DOMAIN}`

/** The advisory lock of a seed that runs. */
const SEED_LOCK = 5_402_119

/**
 * Creates two keys for the demo organisation, which is the one that holds the sandbox's domain; creates the
 * organisation if there is none. `sql` is the owner's.
 */
export async function seed(sql: Sql): Promise<Demo> {
  if ((await codeAge(sql)) === 'older') throw new SetupError(OLDER_DATABASE)
  return sql.begin(async (tx) => {
    // The domain has one holder: a second seed at the same time must find the organisation of the first.
    await tx`select pg_advisory_xact_lock(${SEED_LOCK})`
    const [{ organisation }] = await tx<[{ organisation: string }]>`
      select coalesce(
        (select d.organisation from ops.domains d where d.name = ${DEMO_DOMAIN} limit 1),
        ops.create_organisation('Demo', ${DEMO_OWNER})
      ) as organisation`
    await tx`select ops.verify_domain(${organisation}, ${DEMO_DOMAIN})`
    const [keys] = await tx<{ liveKey: string; testKey: string }[]>`
      select ops.create_api_key(${organisation}, 'live') as live_key,
        ops.create_api_key(${organisation}, 'test') as test_key`
    return v.parse(demoSchema, { organisation, ...keys })
  })
}

/**
 * Returns the demo organisation of an embedded database, which the first call creates. `isNew`: this call
 * created it.
 */
export async function demoOf(
  sql: Sql,
  dataFolder: string,
): Promise<{ demo: Demo; isNew: boolean }> {
  const name = 'demo.json'
  const kept = await readOr(join(dataFolder, name), '')
  // Several first starts at the same time may seed; all return the demo that is in the file.
  const text =
    kept || (await keepOnce(dataFolder, name, `${JSON.stringify(await seed(sql), null, 2)}\n`))
  return { demo: v.parse(demoSchema, JSON.parse(text)), isNew: kept === '' }
}

/** Returns shell commands that send a first message and retrieve it. */
export function firstSteps(address: string, demo: Demo): string {
  const authorization = `-H 'Authorization: Bearer ${demo.liveKey}'`
  return `Send a first message:

curl -s ${address}/v1/emails \\
  ${authorization} \\
  -H 'Content-Type: application/json' \\
  -d '{"from":"Demo <hello@${DEMO_DOMAIN}>","to":"delivered@${DEMO_DOMAIN}","subject":"Hello","text":"My first message."}'

Retrieve it by the id in the response:

curl -s ${address}/v1/emails/<id> ${authorization}
`
}
