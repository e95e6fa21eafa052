import t from 'tap'
import { createGate } from '../../src/worker/gate.ts'

/** A gate with room for this many workers, and how many passed. */
function aGate(room: number) {
  const state = { room, passed: 0 }
  const gate = createGate((asking) => asking < state.room)
  const pass = async () => {
    await gate.pass()
    state.passed += 1
  }
  return { state, gate, pass, settle: () => new Promise(setImmediate) }
}

t.test('createGate(): workers that wait for a job take room', async (t) => {
  const { state, gate, pass, settle } = aGate(2)
  for (let n = 0; n < 5; n += 1) void pass()
  await settle()
  t.equal(state.passed, 2)
  gate.onAsked()
  await settle()
  t.equal(state.passed, 3, 'a worker that has its job admits the next')
})

t.test('createGate(): no worker asks for a job without room', async (t) => {
  const { state, gate, pass, settle } = aGate(0)
  void pass()
  await settle()
  t.equal(state.passed, 0)
  state.room = 1
  gate.admit()
  await settle()
  t.equal(state.passed, 1)
})

t.test('createGate(): a pool that stops lets all workers pass', async (t) => {
  const { state, gate, pass, settle } = aGate(0)
  for (let n = 0; n < 3; n += 1) void pass()
  gate.open()
  void pass()
  await settle()
  t.equal(state.passed, 4)
})
