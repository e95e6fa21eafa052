import t from 'tap'
import { counted } from '../../src/text/counted.ts'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

t.test('core.counted() and counted(): one is singular, none and several are plural', async (t) => {
  const [row] = await sql`
    select core.counted(0, 'segment') as none, core.counted(1, 'segment') as one,
      core.counted(2, 'segment') as two, core.counted(1, 'delivery', 'deliveries') as delivery,
      core.counted(2, 'delivery', 'deliveries') as deliveries`
  t.same(row, {
    none: '0 segments',
    one: '1 segment',
    two: '2 segments',
    delivery: '1 delivery',
    deliveries: '2 deliveries',
  })
  t.same(
    [0, 1, 2].map((count) => counted(count, 'segment')),
    ['0 segments', '1 segment', '2 segments'],
  )
})
