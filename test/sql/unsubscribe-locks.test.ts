import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

t.test(
  'api.unsubscribe: no deadlock with a transaction that locks message and allowance',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { id } = await messageOf(sql, await send(base, organisation, { to: 'jane@c.example' }))
    const [org] = await sql<
      { id: string }[]
    >`select core.decode_id('org', ${organisation.id}) as id`
    const organisation_id = org?.id ?? ''

    const { unsubscribed } = await sql.begin(async (tx) => {
      await tx`select from app.messages where id = ${id} for update`
      const unsubscribed = caller(sql)('unsubscribe', {
        organisation_id,
        email: 'jane@c.example',
        message_id: id,
      })
      await untilLocked(sql)
      // Waits for ever, so that Postgres ends one of the two, if the call holds the allowance.
      await tx`select core.lock_organisations(array[${organisation_id}::uuid])`
      return { unsubscribed }
    })
    t.equal(typeof (await unsubscribed), 'string')
  },
)
