import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { openEmbedded } from '../../src/db/embedded.ts'
import { migrate } from '../../src/db/migrate.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { killServer } from '../fixtures/kill-server.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/until.ts'

// A server of its own, because the others would not like to see theirs killed.
const folder = await mkdtemp(join(tmpdir(), 'postgram-killed-'))
// As root its data would lie elsewhere, and stay there, if user postgres could not enter.
await chmod(folder, 0o711)
const postgresFlags = ['-c', 'fsync=off']
let server = await openEmbedded(folder, { postgresFlags })
const { url } = server
await migrate(url)
const sql = connect(url, { max: 2 })
const { base, stop } = await startTestService(url)
t.teardown(async () => {
  await stop()
  await sql.end()
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

t.test(
  'a service whose database is killed under load goes on by itself when it is back',
  async (t) => {
    const { liveKey, domain } = await createOrganisation(sql)
    const answered: string[] = []
    const refused: number[] = []
    for (const round of [1, 2, 3]) {
      let isKilled = false
      const sends = Array.from({ length: 8 }, async (_, caller) => {
        for (let n = 0; n < 400 && !isKilled; n++) {
          const { status, json } = await post(
            `${base}/v1/emails`,
            liveKey,
            anEmail(domain, { subject: `${round} ${caller} ${n}` }),
          )
          if (status === 200) answered.push(json.id)
          else refused.push(status)
        }
      })
      await until('some to be answered', async () => answered.length > round * 10)
      await killServer(folder)
      isKilled = true
      await Promise.all(sends)
      await server.close()
      server = await openEmbedded(folder, { postgresFlags })
      t.equal(server.url, url, 'the server is back where it was')

      const sent = await until('a send to be accepted again', async () => {
        const answer = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
        return answer.status === 200 && answer.json.id
      })
      answered.push(sent)
      await until(
        'all that was answered to be handed over',
        async () => {
          const [left] = await sql<{ waiting: number }[]>`
        select count(*)::integer as waiting
        from unnest(${answered}::text[]) a
        left join app.messages m on m.id = core.decode_id('em', a)
        where m.sent_at is null`
          return left?.waiting === 0
        },
        60_000,
      )
    }
    t.ok(
      refused.every((status) => status === 500 || status === 429),
      'what was not accepted was answered so',
    )
  },
)

t.test('no message was handed over twice but one whose outcome was unknown', async (t) => {
  const twice = await sql`
    select s.message_id from app.sandbox_messages s join app.messages m on m.id = s.message_id
    where s.handovers > 1 and m.attempts < 2`
  t.same(twice, [])
})
