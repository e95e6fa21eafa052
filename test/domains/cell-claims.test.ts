import t from 'tap'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

// The claims of another cell arrive by replication; here they are inserted.

const { sql } = await createDatabase()
const organisation = await createOrganisation(sql)
const NAME = 'shop.example'

const claimElsewhere = (tx: Tx, age: string, isVerified = false) => tx`
  insert into app.name_claims (name, cell, claimed_at, verified_at)
  values (${NAME}, 2, now() - ${age}::interval, case when ${isVerified} then now() end)
  on conflict (name, cell) do update set claimed_at = excluded.claimed_at, verified_at = excluded.verified_at`

const begin = async (tx: Tx) => {
  const [row] = await tx`
    select verdict, id from api.begin_domain(core.decode_id('org', ${organisation.id}), 'live', 'print', ${NAME}, 'mail')`
  return row
}

const addDomain = async (tx: Tx): Promise<string> => {
  const added = await begin(tx)
  await tx`
    select api.finish_domain(${added?.id}, core.decode_id('org', ${organisation.id}), 'live', 'print', null, '[]')`
  return added?.id
}

const RIGHT = JSON.stringify([{ required: true, status: 'verified' }])

/** A check of the clock, or of a caller, that finds all records right; returns the status. */
const check = async (tx: Tx, id: string, fingerprint: string | null = null) => {
  await tx`
    select api.finish_check(${id}, true, ${RIGHT}::text::jsonb, null, 'live', ${fingerprint})`
  const [row] = await tx`select status from app.domains where id = ${id}`
  return row?.status
}

const ownClaim = (tx: Tx) => tx`
  select verified_at is not null as verified from app.name_claims where name = ${NAME} and cell = 1`

t.test('domain that another cell holds: cannot be added', async (t) => {
  await rolledBack(sql, async (tx) => {
    await claimElsewhere(tx, '1 hour')
    t.match(await begin(tx), { verdict: 'held' })
    await claimElsewhere(tx, '100 days', true)
    t.match(await begin(tx), { verdict: 'held' })
    const verify = (inner: Tx) => inner`select ops.verify_domain(${organisation.id}, ${NAME})`
    t.match(await raisedBy(tx, verify), { message: /another cell has the domain/ })
  })
})

t.test('claim of another cell that has lapsed: does not block', async (t) => {
  await rolledBack(sql, async (tx) => {
    await claimElsewhere(tx, '73 hours')
    t.equal(await check(tx, await addDomain(tx)), 'verified')
  })
})

t.test('domain claimed in two cells: the earlier claim is verified', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await addDomain(tx)
    t.same([...(await ownClaim(tx))], [{ verified: false }])
    // The claim of the other cell was earlier, and arrived later.
    await claimElsewhere(tx, '1 minute')
    t.equal(await check(tx, id), 'pending')
    t.match(await raisedBy(tx, (inner) => check(inner, id, 'print')), {
      code: 'MSREF',
      message: 'already_exists',
    })
    await tx`delete from app.name_claims where cell = 2`
    t.equal(await check(tx, id, 'print'), 'verified')
    t.same([...(await ownClaim(tx))], [{ verified: true }])
  })
  await rolledBack(sql, async (tx) => {
    const id = await addDomain(tx)
    await claimElsewhere(tx, '-1 minute', true)
    t.equal(await check(tx, id, 'print'), 'verified', 'a later claim does not count')
  })
})

t.test('claim: ends with the domain', async (t) => {
  await rolledBack(sql, async (tx) => {
    await addDomain(tx)
    await tx`select ops.release_domain(${NAME})`
    t.same([...(await ownClaim(tx))], [])
    const id = await addDomain(tx)
    await tx`select api.begin_removal(core.decode_id('org', ${organisation.id}), core.encode_id('dom', ${id}))`
    await tx`select api.end_removal(${id}, true)`
    t.same([...(await ownClaim(tx))], [])
  })
})
