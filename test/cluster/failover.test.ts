import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { noPostgres } from '../fixtures/postgres.ts'
import { startHaproxy } from './haproxy.ts'
import { type Cluster, type Member, startCluster, unusablePatroni } from './patroni.ts'
import { type Route, startRoute } from './route.ts'

/** ttl of the page is 20 s, and a busy machine takes longer. */
const MOST_SECONDS = 90

const SUPERUSER = 'postgres:SUPERUSER_PASSWORD'

type Loss = {
  name: string
  strike(cluster: Cluster, primary: Member): Promise<void> | void
  /** Brings the former primary back. */
  mend(primary: Member): Promise<void> | void
  /** The former primary runs, or resumes, without its lease, and clients reach it. */
  isReachable: boolean
}

const losses: Loss[] = [
  {
    name: 'primary and its Patroni killed',
    strike: (_, primary) => primary.kill(),
    mend: (primary) => primary.start(),
    isReachable: false,
  },
  {
    name: 'primary frozen, and resumed after the promotion',
    strike: (_, primary) => primary.freeze(),
    mend: (primary) => primary.thaw(),
    isReachable: true,
  },
  {
    name: 'primary cut off from etcd and its standbys',
    strike: (_, primary) => primary.cutOff(),
    mend: (primary) => primary.reconnect(),
    isReachable: true,
  },
  {
    name: 'switchover on purpose',
    async strike(cluster, primary) {
      await cluster.switchover(primary, await cluster.synchronousStandby())
    },
    mend: () => undefined,
    isReachable: false,
  },
]

const skip = noPostgres || (await unusablePatroni())

t.test('failover under Patroni', { skip }, async (t) => {
  const cluster = await startCluster()
  await cluster.untilComplete()
  const tls = `sslmode=verify-full&sslrootcert=${cluster.certificate}`
  const hosts = cluster.members.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const proxy = `127.0.0.1:${await startHaproxy(cluster)}`
  const routes = [
    await startRoute('all hosts in the address', 'direct', (database) => {
      return `postgres://${SUPERUSER}@${hosts}/${database}?target_session_attrs=read-write&${tls}`
    }),
    await startRoute('HAProxy', 'proxied', (database) => {
      return `postgres://${SUPERUSER}@${proxy}/${database}?${tls}`
    }),
  ]
  const each = (work: (route: Route) => Promise<unknown>) => Promise.all(routes.map(work))
  const addressOf = ({ port }: Member) =>
    `postgres://${SUPERUSER}@127.0.0.1:${port}/postgres?${tls}`
  const admin = connect(addressOf(await cluster.untilComplete()), { max: 1 })
  await admin`create table public.commits (event text)`
  await admin.end()

  for (const { name, strike, mend, isReachable } of losses) {
    await t.test(name, async (t) => {
      const primary = await cluster.untilComplete()
      const client = connect(addressOf(primary), { max: 1 })
      await client`select`
      await each(({ traffic }) => traffic.more(20))
      await each(({ traffic }) => traffic.sendLate())

      const struckAt = performance.now()
      await strike(cluster, primary)
      const commit = isReachable
        ? client`insert into public.commits (event) values (${name})`.then(
            () => 'acknowledged',
            () => 'failed',
          )
        : 'not tried'
      const promoted = await cluster.untilPromoted(primary)
      const promotedAt = new Date()
      await each(({ traffic }) => traffic.more(20))
      await mend(primary)
      await cluster.untilComplete()
      await each(({ traffic }) => traffic.untilDelivered())
      await each((route) => route.untilHealthy(promotedAt))

      if (isReachable) t.equal(await commit, 'failed', 'no commit on the former primary')
      const reader = connect(addressOf(promoted), { max: 1 })
      t.same(await reader`select * from public.commits`, [], 'nor does it return with it')
      await Promise.all([client.end({ timeout: 0 }), reader.end()])
      for (const { name, traffic, ended } of routes) {
        t.same(ended(), [], `${name}: no process ended`)
        const seconds = traffic.longestGap(struckAt)
        t.ok(seconds < MOST_SECONDS, `${name}: accepts go on`)
        t.comment(`${name}: ${seconds.toFixed(1)} s without accepts`)
      }
    })
  }

  await t.test('every message is stored once, delivered, and reported', async (t) => {
    await each(({ traffic }) => traffic.stop())
    for (const { name, traffic } of routes) {
      const { sent, stored, doubled, ambiguous } = await traffic.counts()
      t.equal(stored, sent, `${name}: each Idempotency-Key is accepted once`)
      t.equal(doubled, 0, `${name}: only attempts with an unknown outcome are repeated`)
      t.comment(`${name}: ${sent} messages, ${ambiguous} attempted again, refusals by status`)
      t.comment(traffic.refusals)
    }
  })
})
