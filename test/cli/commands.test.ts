import t from 'tap'
import { commandPrefix, withCommands } from '../../src/cli/commands.ts'
import { USAGE } from '../../src/cli/usage.ts'

t.test(
  'commandPrefix: null under npm, else the words that this process was started with',
  async (t) => {
    const started = (script: string, execArgv: string[]) => {
      t.intercept(process, 'argv', { value: ['/usr/bin/node', script, 'doctor'] })
      t.intercept(process, 'execArgv', { value: execArgv })
      return commandPrefix({ commandWords: null, isRunByNpm: false })
    }
    const script = `${process.cwd()}/src/main.ts`
    t.equal(commandPrefix({ commandWords: null, isRunByNpm: true }), null)
    t.equal(started(script, ['--max-semi-space-size=16']), 'node src/main.ts')
    t.equal(
      started(script, ['--env-file=/etc/postgram.env', '--env-file=/etc/my owner.env']),
      "node --env-file=/etc/postgram.env '--env-file=/etc/my owner.env' src/main.ts",
    )
    t.equal(started('/elsewhere/src/main.ts', []), 'node /elsewhere/src/main.ts')
    const commandWords = 'docker compose run --rm tools'
    t.equal(commandPrefix({ commandWords, isRunByNpm: true }), commandWords)
  },
)

t.test('withCommands: replaces npm scripts by commands with the prefix', async (t) => {
  const texts = {
    'run "npm run migrate" as its owner': 'run "node src/main.ts migrate" as its owner',
    'npm start, or npm start -- --only worker':
      'node src/main.ts start, or node src/main.ts start --only worker',
    'npm run sql -- [--write] "select …"': 'node src/main.ts sql [--write] "select …"',
    'npm start [-- --only api]': 'node src/main.ts start [--only api]',
    'run npm ci': 'run npm ci',
  }
  for (const [text, expected] of Object.entries(texts)) {
    t.equal(withCommands('node src/main.ts', text), expected)
    t.equal(withCommands(null, text), text)
  }
  t.match(
    withCommands('node src/main.ts', USAGE),
    /^usage: node src\/main\.ts <command> \[<arguments>\]\n/,
  )
})
