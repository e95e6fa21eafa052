// The attacking process: gets one JSON line, builds its bodies, says ready, waits for a line, attacks,
// and prints what came back as one JSON line.
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import type { Attacker } from './attack.ts'
import { attacks } from './attacks/index.ts'
import { createGun } from './gun.ts'

// Attackers have machines of their own: here they take only the processor time that is left.
setPriority(10)

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const order: { name: string; base: string; attackers: Attacker[]; seconds: number } = JSON.parse(
  (await lines.next()).value ?? '',
)
const attack = attacks.find(({ name }) => name === order.name)
if (!attack) throw new Error(`there is no attack ${order.name}`)
const { gun, start, answers } = createGun(order)
const run = attack.aim(gun)
console.log(JSON.stringify({ ready: true }))
await lines.next()
start()
await Promise.race([run(), gun.over.then(() => new Promise((late) => setTimeout(late, 3000)))])
console.log(JSON.stringify({ answers }))
process.exit()
