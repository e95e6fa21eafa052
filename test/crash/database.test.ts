import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { openEmbedded } from '../../src/db/embedded/index.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { dataParent } from '../fixtures/folders.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { killServer } from '../fixtures/postgres.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

// A separate server, as this test kills it.
const folder = await mkdtemp(join(dataParent, 'postgram-killed-'))
// Under root, user postgres must be able to enter the data folder.
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
  'Postgres killed during sends: they get true responses, and the service goes on afterwards',
  async (t) => {
    const organisation = await createOrganisation(sql)
    await liftRate(sql, organisation)
    const { liveKey, domain } = organisation
    const answers: { subject: string; status: number; id?: string; message?: string }[] = []
    const send = async (subject: string) => {
      const { status, json } = await post(
        `${base}/v1/emails`,
        liveKey,
        anEmail(domain, { subject }),
      )
      answers.push({ subject, status, id: json.id, message: json.error?.message })
    }
    for (const round of [1, 2]) {
      let isBack = false
      const sends = Array.from({ length: 16 }, async (_, caller) => {
        for (let n = 0; !isBack; n++) await send(`${round} ${caller} ${n}`)
      })
      await until('some to be answered', async () => answers.length > round * 30)
      await killServer(folder)
      await server.close()
      server = await openEmbedded(folder, { postgresFlags })
      t.equal(server.url, url, 'the server is back where it was')
      isBack = true
      await Promise.all(sends)
    }

    const rows = await sql<{ subject: string; ids: string[] }[]>`
      select m.subject, array_agg(core.encode_id('em', m.id)) as ids from app.messages m group by 1`
    const found = new Map(rows.map(({ subject, ids }) => [subject, ids]))
    for (const { subject, status, id, message } of answers) {
      const ids = found.get(subject) ?? []
      if (status === 200) t.same(ids, [id], 'accepted once')
      else if (/nothing was sent/.test(message ?? '')) t.same(ids, [], 'nothing was sent')
      else t.match({ status, message }, { status: 500, message: /it is unknown whether/ })
    }
    t.ok(
      answers.some(({ status }) => status === 200),
      'some were accepted',
    )
    const refused = answers.filter(({ status }) => status !== 200)
    t.comment(`${answers.length} answers, of which ${refused.length} refused`)

    const accepted = answers.flatMap(({ id }) => id ?? [])
    await until('all that was accepted to be handed over', async () => {
      const [left] = await sql<{ waiting: number }[]>`
        select count(*)::integer as waiting
        from unnest(${accepted}::text[]) a
        left join app.messages m on m.id = core.decode_id('em', a)
        where m.sent_at is null`
      return left?.waiting === 0
    })
  },
)

t.test('Postgres killed: only messages with an unknown outcome are attempted twice', async (t) => {
  const twice = await sql`
    select s.message_id from ${takenBySandbox(sql)} s join app.messages m on m.id = s.message_id
    where s.attempts > 1 and m.attempts < 2`
  t.same(twice, [])
})
