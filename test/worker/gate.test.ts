import t from 'tap'
import { createGate } from '../../src/worker/gate.ts'

/** A gate of a pool whose attempts are full or not, and how many of its workers passed. */
function aGate(maxAsking: number) {
  const state = { isFull: false, passed: 0 }
  const gate = createGate({ isFull: () => state.isFull, maxAsking })
  const pass = async () => {
    await gate.pass()
    state.passed += 1
  }
  return { state, gate, pass, settle: () => new Promise(setImmediate) }
}

t.test('createGate(): a bounded number of workers waits for a job', async (t) => {
  const { state, gate, pass, settle } = aGate(2)
  for (let n = 0; n < 5; n += 1) void pass()
  await settle()
  t.equal(state.passed, 2)
  gate.onAsked()
  await settle()
  t.equal(state.passed, 3, 'a worker that has its job admits the next')
})

t.test('createGate(): no worker asks for a job while no attempt could begin', async (t) => {
  const { state, gate, pass, settle } = aGate(2)
  state.isFull = true
  void pass()
  await settle()
  t.equal(state.passed, 0)
  state.isFull = false
  gate.admit()
  await settle()
  t.equal(state.passed, 1)
})

t.test('createGate(): a pool that stops lets all workers pass', async (t) => {
  const { state, gate, pass, settle } = aGate(1)
  state.isFull = true
  for (let n = 0; n < 3; n += 1) void pass()
  gate.open()
  void pass()
  await settle()
  t.equal(state.passed, 4)
})
