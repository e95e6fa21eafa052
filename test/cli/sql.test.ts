import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { runCommand } from '../fixtures/processes.ts'

const { url } = await createDatabase()

t.test('sql: prints control characters of rows and of errors as codes', async (t) => {
  const run = (query: string) => runCommand(['sql', query], { DATABASE_URL: url })
  t.same(await run("select E'\\x1b]0;title\\x07' as body"), {
    code: 0,
    stdout: 'body\n----------------\n\\x1B]0;title\\x07\n(1 row)\n',
    stderr: '',
  })
  t.same(await run("select E'\\x1b]0;title\\x07'::integer"), {
    code: 1,
    stdout: '',
    stderr: 'invalid input syntax for type integer: "\\x1B]0;title\\x07"\n',
  })
})
