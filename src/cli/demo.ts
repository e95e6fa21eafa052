import { join } from 'node:path'
import * as v from 'valibot'
import type { Sql } from '../db/client.ts'
import { keepOnce, readOr } from '../db/kept-file.ts'
import { codeAge, OLDER_DATABASE } from '../db/migrate/code-age.ts'
import { SetupError } from '../errors.ts'

const demoSchema = v.object({ organisation: v.string(), liveKey: v.string(), testKey: v.string() })

export type Demo = v.InferOutput<typeof demoSchema>

const DEMO_DOMAIN = 'sandbox.postgram.test'

/** Any number will do that no other lock of ours has. */
const SEED_LOCK = 5_402_119

/**
 * Make a demo organisation with the sandbox's domain, or take over the domain's holder, and two new
 * keys for it. `sql` is the owner's.
 */
export async function seed(sql: Sql): Promise<Demo> {
  if ((await codeAge(sql)) === 'older') throw new SetupError(OLDER_DATABASE)
  return sql.begin(async (tx) => {
    // Of two at once the second must find the organisation of the first: the domain has one holder.
    await tx`select pg_advisory_xact_lock(${SEED_LOCK})`
    const [holder] = await tx<{ organisation: string }[]>`
      select organisation from ops.domains where name = ${DEMO_DOMAIN}`
    const organisation =
      holder?.organisation ??
      (
        await tx<{ id: string }[]>`
          select ops.create_organisation('Demo', ${`owner@${DEMO_DOMAIN}`}) as id`
      )[0]?.id
    if (!organisation) throw new Error('the demo organisation was not made')
    await tx`select ops.verify_domain(${organisation}, ${DEMO_DOMAIN})`
    const [keys] = await tx<{ liveKey: string; testKey: string }[]>`
      select ops.create_api_key(${organisation}, 'live') as live_key,
        ops.create_api_key(${organisation}, 'test') as test_key`
    return v.parse(demoSchema, { organisation, ...keys })
  })
}

/**
 * The demo organisation of an embedded database: seeded at the first start, the same ever after. Tells
 * whether it was made just now.
 */
export async function demoOf(
  sql: Sql,
  dataFolder: string,
): Promise<{ demo: Demo; isNew: boolean }> {
  const name = 'demo.json'
  const kept = await readOr(join(dataFolder, name), '')
  // Of first starts at once each may come to seed; all get the demo that is kept.
  const text =
    kept || (await keepOnce(dataFolder, name, `${JSON.stringify(await seed(sql), null, 2)}\n`))
  return { demo: v.parse(demoSchema, JSON.parse(text)), isNew: kept === '' }
}

/** How to send a first message and follow it: commands to be pasted into a shell. */
export function firstSteps(address: string, demo: Demo): string {
  const authorization = `-H 'Authorization: Bearer ${demo.liveKey}'`
  return `Send a first message:

curl -s ${address}/v1/emails \\
  ${authorization} \\
  -H 'Content-Type: application/json' \\
  -d '{"from":"Demo <hello@${DEMO_DOMAIN}>","to":"delivered@${DEMO_DOMAIN}","subject":"Hello","text":"My first message."}'

then see what became of it, by the id that it answers:

curl -s ${address}/v1/emails/<id> ${authorization}
`
}
