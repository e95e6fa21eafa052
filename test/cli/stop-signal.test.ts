import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'

/** The test sets its clock. */
const program = `
  import { stopSignal } from '${import.meta.resolve('../../src/cli/stop-signal.ts')}'
  let now = 0
  performance.now = () => now
  process.on('message', (time) => { now = time; process.send('now') })
  stopSignal().addEventListener('abort', () => process.send('stopping'))
  process.send('ready')`

async function start(t: Test) {
  const args = ['--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exit = once(child, 'exit')
  const said: unknown[] = []
  const next = async () => {
    const [message] = await once(child, 'message')
    said.push(message)
  }
  await next()
  return { child, exit, said, next }
}

t.test('stopSignal: signals within 1 s of the first one count as one', async (t) => {
  const { child, said, next } = await start(t)
  child.kill('SIGTERM')
  await next()
  child.kill('SIGTERM')
  child.kill('SIGINT')
  child.send(900)
  await next()
  child.kill('SIGTERM')
  child.send(950)
  await next()
  t.same(said, ['ready', 'stopping', 'now', 'now'])
  t.equal(child.exitCode, null)
})

t.test('stopSignal: a signal more than 1 s after the first one exits with 1', async (t) => {
  const { child, exit, next } = await start(t)
  child.kill('SIGINT')
  await next()
  child.send(1100)
  await next()
  child.kill('SIGTERM')
  t.same(await exit, [1, null])
})
