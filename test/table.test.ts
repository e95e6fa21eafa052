import t from 'tap'
import { formatTable } from '../src/table.ts'

t.test('formatTable: a cell of several lines is shown below itself, as in psql', async (t) => {
  const rows = [
    { name: 'pause', what: 'Pause an\norganisation.' },
    { name: 'resume', what: null },
  ]
  t.equal(
    formatTable(rows, ['name', 'what']),
    [
      'name   | what',
      '-------+--------------',
      'pause  | Pause an     +',
      '       | organisation.',
      'resume |',
      '(2 rows)',
    ].join('\n'),
  )
})
