import t from 'tap'
import { addCellToKeys } from '../../src/cli/cells/lists.ts'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'

// The rows of another cell arrive by replication; here they are inserted.

const { sql } = await createDatabase()
await addCellToKeys(sql)

const EMAIL = 'gone@acme.example'
const PHONE = '+27821230001'

const isSuppressed = async (tx: Tx) => {
  const rows = await tx`
    select from core.suppressed(gen_random_uuid(), array[${EMAIL}], 'transactional')`
  return rows.length > 0
}

const isBlocked = async (tx: Tx) => {
  const rows = await tx`select from core.blocked_numbers_of(${PHONE})`
  return rows.length > 0
}

const hashOf = (person: string) => sql`
  (select core.person_sha256(${person}, s.salt) from app.person_salt s)`

const bounceElsewhere = (tx: Tx, cell = 2, age = '1 hour') => tx`
  insert into app.hard_bounces (email, cell, note, created_at)
  values (${EMAIL}, ${cell}, 'elsewhere', now() - ${age}::interval)`

const blockElsewhere = (tx: Tx) => tx`
  insert into app.blocked_numbers (phone, cell, note, created_at)
  values (${PHONE}, 2, 'elsewhere', now() - interval '1 hour')`

t.test('hard bounce of another cell: suppresses for this cell, and is listed once', async (t) => {
  await rolledBack(sql, async (tx) => {
    await bounceElsewhere(tx)
    t.equal(await isSuppressed(tx), true)
    await tx`select ops.suppress_globally(${EMAIL}, 'here')`
    await bounceElsewhere(tx, 3)
    const rows = await tx`select email, note from ops.suppressions where email = ${EMAIL}`
    t.same([...rows], [{ email: EMAIL, note: 'elsewhere' }])
  })
})

t.test('hard bounce removed here: applies no more, whichever cells wrote it', async (t) => {
  await rolledBack(sql, async (tx) => {
    await bounceElsewhere(tx)
    // A clock ahead of this one: its row is still older than the removal.
    await bounceElsewhere(tx, 3, '-10 minutes')
    await tx`select ops.unsuppress_globally(${EMAIL})`
    t.equal(await isSuppressed(tx), false)
    t.same([...(await tx`select from ops.suppressions where email = ${EMAIL}`)], [])
    await t.rejects(
      tx.savepoint((inner) => inner`select ops.unsuppress_globally(${EMAIL})`),
      /is not suppressed globally/,
    )
    const own = await tx`select removed_at > now() as later from app.hard_bounces where cell = 1`
    t.same([...own], [{ later: true }])
  })
})

t.test('hard bounce after a removal: applies again', async (t) => {
  await rolledBack(sql, async (tx) => {
    await bounceElsewhere(tx)
    await tx`select ops.unsuppress_globally(${EMAIL})`
    await tx`select ops.suppress_globally(${EMAIL}, 'again')`
    t.equal(await isSuppressed(tx), true)
    await tx`select ops.unsuppress_globally(${EMAIL})`
    await tx`
      insert into app.hard_bounces (email, cell, created_at)
      values (${EMAIL}, 4, now() + interval '1 day')`
    t.equal(await isSuppressed(tx), true, 'also when another cell records it')
  })
})

t.test('hard bounce that another cell removed: a new bounce here suppresses again', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.suppress_globally(${EMAIL}, 'first')`
    await tx`
      insert into app.hard_bounces (email, cell, created_at, removed_at)
      values (${EMAIL}, 2, now(), now() + interval '5 minutes')`
    t.equal(await isSuppressed(tx), false)
    await tx`select ops.suppress_globally(${EMAIL}, 'second')`
    t.equal(await isSuppressed(tx), true)
  })
})

t.test('hard bounce of this cell only: a removal leaves no row', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.suppress_globally(${EMAIL})`
    await tx`select ops.unsuppress_globally(${EMAIL})`
    t.same([...(await tx`select from app.hard_bounces`)], [])
  })
})

t.test('blocked number of another cell: blocks here until it is unblocked', async (t) => {
  await rolledBack(sql, async (tx) => {
    await blockElsewhere(tx)
    t.equal(await isBlocked(tx), true)
    await tx`select ops.block_number(${PHONE}, 'here')`
    t.same([...(await tx`select note from ops.blocked_numbers`)], [{ note: 'elsewhere' }])
    await tx`select ops.unblock_number(${PHONE})`
    t.equal(await isBlocked(tx), false)
    await tx`select ops.block_number(${PHONE}, 'again')`
    t.same([...(await tx`select note from ops.blocked_numbers`)], [{ note: 'again' }])
  })
})

t.test(
  'list of the registry that replaces: unblocks numbers that another cell blocked',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      await blockElsewhere(tx)
      await tx`insert into ops.staged_numbers values ('+27821230002')`
      await tx`select ops.apply_staged_numbers(replaces => true)`
      t.equal(await isBlocked(tx), false)
      t.same([...(await tx`select phone from ops.blocked_numbers`)], [{ phone: '+27821230002' }])
    })
  },
)

t.test('hash of another cell: suppresses here until it is removed', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.global_suppression_hashes (sha256, reason, cell, erased_at)
      values (${hashOf(EMAIL)}, 'hard_bounce', 2, now())`
    t.equal(await isSuppressed(tx), true)
    await tx`select ops.unsuppress_globally(${EMAIL})`
    t.equal(await isSuppressed(tx), false)
  })
})

t.test('ops.erase_person: keeps as a hash that another cell suppresses the person', async (t) => {
  await rolledBack(sql, async (tx) => {
    await bounceElsewhere(tx)
    await tx`select ops.erase_person(${EMAIL})`
    const hashes = await tx`select reason, cell from app.global_suppression_hashes`
    t.same([...hashes], [{ reason: 'hard_bounce', cell: 1 }])
    await tx`delete from app.hard_bounces`
    t.equal(await isSuppressed(tx), true, 'after the other cell has erased the person, too')
  })
})
