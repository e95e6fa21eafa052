import fc from 'fast-check'
import t from 'tap'
import { csvLine, readCsv } from '../../src/text/csv.ts'

const rowsOf = (text: string) => [...readCsv(text)]
const valuesOf = (text: string) => rowsOf(text).map(({ values }) => values)

t.test('readCsv: returns the values of each line that is not empty, with its number', async (t) => {
  t.same(rowsOf('a, b\n\n"c ""d"", e",f\n'), [
    { line: 1, values: ['a', 'b'] },
    { line: 3, values: ['c "d", e', 'f'] },
  ])
  t.same(rowsOf(''), [])
  t.same(rowsOf('\n ,\n'), [])
})

t.test('readCsv: a quoted line break is part of the value, and counts as a line', async (t) => {
  t.same(rowsOf('"a\nb",c\nd'), [
    { line: 1, values: ['a\nb', 'c'] },
    { line: 3, values: ['d'] },
  ])
})

t.test('readCsv: takes the semicolon or the tab of a first line without a comma', async (t) => {
  t.same(valuesOf('a;b\nc,d;e'), [
    ['a', 'b'],
    ['c,d', 'e'],
  ])
  t.same(valuesOf('a\tb\nc;d\te'), [
    ['a', 'b'],
    ['c;d', 'e'],
  ])
})

t.test('readCsv: ignores a byte order mark, and keeps a quote that is not closed', async (t) => {
  t.same(valuesOf('\uFEFFa,b'), [['a', 'b']])
  t.same(valuesOf('"a,b\nc'), [['"a', 'b'], ['c']])
  t.same(valuesOf('a "b" c,"d" e'), [['a "b" c', '"d" e']])
})

t.test('readCsv: reads what a writer of RFC 4180 wrote', async () => {
  const value = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', ';'), minLength: 1 })
  const written = (one: string) => `"${one.replaceAll('"', '""')}"`
  fc.assert(
    fc.property(fc.array(fc.tuple(value, fc.constant('x')), { minLength: 1 }), (rows) => {
      const text = rows.map((row) => row.map(written).join(',')).join('\n')
      const trimmed = rows.map((row) => row.map((one) => one.trim()))
      // The first separator decides, and a semicolon can stand before the comma in the first value only.
      if (!text.split('\n', 1)[0]?.includes(',')) return
      t.same(valuesOf(text), trimmed)
    }),
  )
})

t.test('csvLine: quotes what has to be quoted and ends with a line break', async (t) => {
  const values = ['plain', null, -5, 'a,b', 'say "no"', 'two\nlines']
  t.equal(csvLine(values), 'plain,,-5,"a,b","say ""no""","two\nlines"\r\n')
})

t.test('csvLine: puts a quote before a text that a spreadsheet runs as a formula', async (t) => {
  for (const text of ['=1+1', '+27821234567', '-1', '@SUM(A1)', '\t=1', '\r=1']) {
    t.match(csvLine([text]), /^"?'/, JSON.stringify(text))
  }
  t.equal(csvLine(['a=1', "'a", ' =1']), "a=1,'a, =1\r\n")
})

t.test('readCsv: reads what csvLine wrote', async () => {
  const value = fc.string({
    unit: fc.constantFrom('a', "'", '"', ',', '\n', '=', '-'),
    minLength: 1,
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(value, value), { minLength: 1 }), (rows) => {
      const lines = [['a', 'b'], ...rows]
      const text = lines.map((row) => csvLine(row).replace(/\r\n$/, '\n')).join('')
      const trimmed = lines.map((row) => row.map((one) => one.trim()))
      t.same(
        valuesOf(text),
        trimmed.filter((row) => row.some((one) => one !== '')),
      )
    }),
  )
})
