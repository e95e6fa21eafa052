// The attacking process: reads one JSON line, builds its requests, prints that it is ready, waits for a line,
// attacks, and prints the numbers of responses as one JSON line.
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import type { Attacker } from './attack.ts'
import { attacks } from './attacks/index.ts'
import { createAttackClient } from './client.ts'

// Real attackers use other machines: here the process runs only on idle processor time.
setPriority(10)

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const order: { name: string; base: string; attackers: Attacker[]; seconds: number } = JSON.parse(
  (await lines.next()).value ?? '',
)
const attack = attacks.find(({ name }) => name === order.name)
if (!attack) throw new Error(`unknown attack ${order.name}`)
const { client, start, responses } = createAttackClient(order)
const run = attack.build(client)
console.log(JSON.stringify({ ready: true }))
await lines.next()
start()
// It ends: the client cuts off what has no response 2 s after the time is over.
await run()
console.log(JSON.stringify({ responses }))
process.exit()
