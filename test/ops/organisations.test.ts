import { createHash } from 'node:crypto'
import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'

const { sql } = await createDatabase()

/** Returns the single value of an ops function. */
async function ask<Value>(tx: Tx, query: string, ...values: unknown[]): Promise<Value> {
  const [row] = await tx.unsafe(`select ops.${query} as answer`, values as never)
  return row?.answer
}

const organisationOf = async (tx: Tx, id: string) => {
  const [row] = await tx`select * from ops.organisations where id = ${id}`
  return { ...row } as Record<string, unknown>
}

const create = (tx: Tx, name = 'Acme') =>
  ask<string>(tx, 'create_organisation($1, $2)', name, 'owner@acme.example')

t.test(
  'ops.create_organisation: creates an active organisation with the starter plan and no usage',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const id = await create(tx)
      t.match(id, /^org_[0-9a-hjkmnp-tv-z]{26}$/)
      t.match(await organisationOf(tx, id), {
        name: 'Acme',
        ownerEmail: 'owner@acme.example',
        plan: 'starter',
        state: 'active',
        stateReason: null,
        emailsUsed: 0,
        emailsIncluded: 10_000,
        messagesWaiting: '0',
      })
    })
  },
)

t.test('ops.rename_organisation: changes the name', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    const before = await organisationOf(tx, id)
    await ask(tx, "rename_organisation($1, 'Acme (Pty) Ltd')", id)
    t.strictSame(await organisationOf(tx, id), { ...before, name: 'Acme (Pty) Ltd' })
  })
})

t.test(
  'ops.set_plan_terms: changes the given terms for every organisation on the plan',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const planOf = async (id: string) => (await tx`select * from ops.plans where id = ${id}`)[0]
      await ask(tx, "create_plan('gold', 'Gold', 499, 10, 20, 3)")
      const [id, other] = [await create(tx), await create(tx, 'Other')]
      await ask(tx, 'set_plan($1, $2)', id, 'gold')
      const starter = await planOf('starter')
      await ask(tx, "set_plan_terms('gold', price_rand => 599, sms_included => 25)")
      t.match(await planOf('gold'), {
        name: 'Gold',
        priceRand: 599,
        emailsIncluded: 10,
        smsIncluded: 25,
        domainsIncluded: 3,
      })
      t.same(await planOf('starter'), starter)
      t.match(await organisationOf(tx, id), { smsIncluded: 25 })
      t.match(await organisationOf(tx, other), { smsIncluded: 100 })
    })
  },
)

t.test('ops.create_organisation: the first period is a month from today', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select set_config('postgram.now', '2031-01-31T10:00:00Z', true)`
    const id = await create(tx)
    t.match(await organisationOf(tx, id), {
      createdAt: new Date('2031-01-31T10:00:00Z'),
      periodEnd: new Date('2031-02-28T10:00:00Z'),
    })
  })
})

t.test(
  'ops.create_organisation: names are up to 200 characters and need not be unique',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      t.not(await create(tx), await create(tx))
      for (const name of ['é'.repeat(200), "O'Brien \\ <b>", '🙂']) {
        t.equal((await organisationOf(tx, await create(tx, name))).name, name)
      }
    })
  },
)

t.test(
  'ops.create_plan and ops.set_plan: an organisation moves to a new plan and back',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      t.equal(await ask(tx, "create_plan('gold_1', 'Gold', 499, 0, 0, 2147483647)"), 'gold_1')
      const id = await create(tx)
      await ask(tx, 'set_plan($1, $2)', id, 'gold_1')
      t.match(await organisationOf(tx, id), { plan: 'gold_1', emailsIncluded: 0 })
      await ask(tx, 'set_plan($1, $2)', id, 'gold_1')
      t.same(await tx`select * from ops.plans order by id`, [
        {
          id: 'gold_1',
          name: 'Gold',
          priceRand: 499,
          emailsIncluded: 0,
          smsIncluded: 0,
          domainsIncluded: 2_147_483_647,
          testMessagesDaily: 10_000,
          organisations: '1',
        },
        {
          id: 'starter',
          name: 'Starter',
          priceRand: 0,
          emailsIncluded: 10_000,
          smsIncluded: 100,
          domainsIncluded: 3,
          testMessagesDaily: 10_000,
          organisations: '0',
        },
      ])
      await ask(tx, 'set_plan($1, $2)', id, 'starter')
      t.match(await organisationOf(tx, id), { plan: 'starter', emailsIncluded: 10_000 })
    })
  },
)

t.test('ops.set_owner_email: the next notice goes to the new address', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    await ask(tx, 'set_owner_email($1, $2)', id, 'next@acme.example')
    t.match(await organisationOf(tx, id), { ownerEmail: 'next@acme.example' })
    const [notice] = await tx`
      select n.owner_email from core.notify_owner(core.decode_id('org', ${id}), 'org_paused', '{}') as made (id)
      cross join lateral api.start_notice(made.id, 'acme.example') n`
    t.match(notice, { ownerEmail: 'next@acme.example' })
  })
})

t.test('ops.create_plan: accepts IDs of 1 and of 64 characters', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const id of ['a', '0', `a${'-_'.repeat(31)}9`]) {
      t.equal(await ask(tx, "create_plan($1, 'x', 0, 0, 0, 0)", id), id)
    }
  })
})

const admitted = async (tx: Tx, key: string) => {
  const hash = createHash('sha256').update(key).digest('hex')
  const [row] = await tx`select * from api.admit(array[${hash}])`
  return row
}

t.test('ops.create_api_key: returns a working key and stores only its hash', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    const key = await ask<string>(tx, 'create_api_key($1)', id)
    t.match(key, /^sk_live_[0-9a-f]{64}$/)
    t.match(await admitted(tx, key), {
      mode: 'live',
      scopes: ['emails:send', 'sms:send', 'read', 'domains:write'],
      state: 'active',
    })
    t.equal(await admitted(tx, `${key}0`), undefined)
    const [kept] = await tx<
      { all: string }[]
    >`select string_agg(k::text, ' ') as all from app.api_keys k`
    t.notOk(kept?.all.includes(key.slice(17)), 'no more than its prefix is to be found')
    t.match(
      [...(await tx`select * from ops.api_keys`)],
      [{ prefix: key.slice(0, 16), organisation: id, mode: 'live', revokedAt: null }],
    )
  })
})

t.test('ops.create_api_key: a key can have mode test and some scopes', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    const key = await ask<string>(tx, "create_api_key($1, 'test', '{read,emails:send}')", id)
    t.match(key, /^sk_test_/)
    t.match(await admitted(tx, key), { mode: 'test', scopes: ['read', 'emails:send'] })
    const named = await ask<string>(tx, "create_api_key($1, scopes => '{read}')", id)
    t.match(await admitted(tx, named), { mode: 'live', scopes: ['read'] })
  })
})

t.test('ops.revoke_api_key: revokes a key by prefix or whole, immediately', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    const keys = []
    for (let n = 0; n < 3; n += 1) keys.push(await ask<string>(tx, 'create_api_key($1)', id))
    const [first = '', second = '', third = ''] = keys
    t.equal(await ask(tx, 'revoke_api_key($1)', first), first.slice(0, 16))
    t.equal(await ask(tx, 'revoke_api_key($1)', second.slice(0, 16)), second.slice(0, 16))
    t.equal(await admitted(tx, first), undefined)
    t.equal(await admitted(tx, second), undefined)
    t.ok(await admitted(tx, third), 'the others are not touched')
    for (const again of [first, second.slice(0, 16)]) {
      await t.rejects(
        tx.savepoint((inner) => ask(inner as Tx, 'revoke_api_key($1)', again)),
        { message: 'no valid API key matches; it may be revoked already' },
      )
    }
    const revoked = await tx`select from ops.api_keys where revoked_at is not null`
    t.equal(revoked.length, 2)
  })
})

t.test('ops.revoke_api_key: a prefix shared by two keys revokes neither', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    const key = await ask<string>(tx, 'create_api_key($1)', id)
    await ask(tx, 'create_api_key($1)', id)
    const prefix = key.slice(0, 16)
    await tx`update app.api_keys set prefix = ${prefix}`
    await t.rejects(
      tx.savepoint((inner) => ask(inner as Tx, 'revoke_api_key($1)', prefix)),
      { message: `several keys start with '${prefix}'; give the whole key` },
    )
    t.ok(await admitted(tx, key))
    await ask(tx, 'revoke_api_key($1)', key)
    t.equal(await admitted(tx, key), undefined)
  })
})

t.test('ops.pause, resume, suspend and reinstate change the state', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select set_config('postgram.now', '2031-05-01T10:00:00Z', true)`
    const id = await create(tx)
    const since = new Date('2031-05-01T11:00:00Z')
    await tx`select set_config('postgram.now', '2031-05-01T11:00:00Z', true)`
    const steps: [query: string, answer: unknown, state: string, reason: string | null][] = [
      ["pause($1, 'a look')", null, 'paused', 'a look'],
      ['resume($1)', 0, 'active', null],
      ["pause($1, 'another look')", null, 'paused', 'another look'],
      ["suspend($1, 'spam')", 0, 'suspended', 'spam'],
      ['reinstate($1)', null, 'paused', 'another look'],
      ['resume($1)', 0, 'active', null],
      ["suspend($1, 'spam again')", 0, 'suspended', 'spam again'],
      ['reinstate($1)', null, 'active', null],
    ]
    for (const [query, answer, state, reason] of steps) {
      t.equal(await ask(tx, query, id), answer, query)
      t.match(await organisationOf(tx, id), { state, stateReason: reason, stateSince: since })
    }
  })
})

t.test('pause and suspension leave each other alone in every order of four actions', async (t) => {
  const actions = ['pause', 'resume', 'suspend', 'reinstate'] as const
  const paths = actions.flatMap((a) =>
    actions.flatMap((b) => actions.flatMap((c) => actions.map((d) => [a, b, c, d]))),
  )
  await rolledBack(sql, async (tx) => {
    for (const path of paths) {
      const id = await create(tx)
      const facts: Record<'pause' | 'suspension', string | null> = { pause: null, suspension: null }
      const [found, expected]: [unknown[], unknown[]] = [[], []]
      for (const [place, action] of path.entries()) {
        const fact = action === 'pause' || action === 'resume' ? 'pause' : 'suspension'
        const reason = action === 'pause' || action === 'suspend' ? `reason ${place}` : null
        const call = reason === null ? `${action}($1)` : `${action}($1, '${reason}')`
        const isDone = await tx
          .savepoint((inner) => ask(inner as Tx, call, id))
          .then(() => true)
          .catch(() => false)
        const isPossible = (facts[fact] === null) === (reason !== null)
        if (isPossible) facts[fact] = reason
        const { state, stateReason, pauseReason, suspensionReason } = await organisationOf(tx, id)
        found.push([isDone, state, stateReason, pauseReason, suspensionReason])
        const shown = facts.suspension ? 'suspended' : facts.pause ? 'paused' : 'active'
        const { pause, suspension } = facts
        expected.push([isPossible, shown, suspension ?? pause, pause, suspension])
      }
      t.same(found, expected, path.join(', '))
    }
  })
})

t.test('ops.pause: a pause of a suspended organisation is in the audit', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    await ask(tx, "suspend($1, 'unpaid')", id)
    await ask(tx, "pause($1, 'a look')", id)
    await ask(tx, 'resume($1)', id)
    await ask(tx, 'reinstate($1)', id)
    const rows = await tx`
      select action, before, after from ops.audit
      where organisation = ${id} and action <> 'create_organisation' order by id`
    t.same(
      rows.map((row) => ({ ...row })),
      [
        {
          action: 'suspend',
          before: { state: 'active', reason: null },
          after: { state: 'suspended', reason: 'unpaid' },
        },
        {
          action: 'pause',
          before: { state: 'suspended', reason: null },
          after: { state: 'suspended', reason: 'a look' },
        },
        {
          action: 'resume',
          before: { state: 'suspended', reason: 'a look' },
          after: { state: 'suspended', reason: null },
        },
        {
          action: 'reinstate',
          before: { state: 'suspended', reason: 'unpaid' },
          after: { state: 'active', reason: null },
        },
      ],
    )
  })
})

t.test('a change of state applies to the next request', async (t) => {
  await rolledBack(sql, async (tx) => {
    const id = await create(tx)
    const key = await ask<string>(tx, 'create_api_key($1)', id)
    await ask(tx, "pause($1, 'a look')", id)
    t.match(await admitted(tx, key), { state: 'paused' })
    await ask(tx, "suspend($1, 'spam')", id)
    t.match(await admitted(tx, key), { state: 'suspended' })
  })
})

t.test('ops.pause: of two concurrent calls one raises an error', async (t) => {
  const id = await sql.begin((tx) => create(tx))
  const outcomes = await Promise.allSettled(
    [1, 2].map(() => sql`select ops.pause(${id}, 'a look')`),
  )
  t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  t.equal(failed?.reason.message, 'the organisation is already paused')
})

t.test('ops.create_plan: of two concurrent calls one raises an error', async (t) => {
  const outcomes = await Promise.allSettled(
    [1, 2].map(() => sql`select ops.create_plan('twice', 'Twice', 0, 0, 0, 0)`),
  )
  t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  t.equal(failed?.reason.message, "a plan 'twice' already exists")
  t.same(await caller(sql)('admit', { keys: [] }), [])
})
