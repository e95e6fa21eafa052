import t from 'tap'
import { formatTable } from '../../src/cli/table.ts'

t.test(
  'formatTable: prints a cell with several lines on several lines, as psql does',
  async (t) => {
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
  },
)

t.test('formatTable: control characters are printed as codes and tabs as spaces', async (t) => {
  // What psql 15 prints for these.
  const rows = [{ body: 'a\tb\x1b[31mred\r\x85\x9b x\x7f y' }, { body: 'sé \u{1f600}\0\n\x07\t.' }]
  t.equal(
    formatTable(rows, ['body']),
    [
      'body',
      '-'.repeat(42),
      'a       b\\x1B[31mred\\r\\u0085\\u009B x\\x7F y',
      'sé \u{1f600}\\x00                                 +',
      '\\x07    .',
      '(2 rows)',
    ].join('\n'),
  )
  const head = formatTable([], ['\x1b]0;title\x07'])
  t.equal(head.split('\n')[0], '\\x1B]0;title\\x07')
  const nested = formatTable([{ body: { text: '\x9b2J' } }], ['body'])
  t.equal(nested.split('\n')[2], '{"text":"\\u009B2J"}')
})

t.test('formatTable: prints 200 000 rows', async (t) => {
  const rows = Array.from({ length: 200_000 }, (_, n) => ({ n }))
  const lines = formatTable(rows, ['n']).split('\n')
  t.equal(lines.length, 200_003)
  t.equal(lines[1], '------')
  t.equal(lines.at(-2), '199999')
})
