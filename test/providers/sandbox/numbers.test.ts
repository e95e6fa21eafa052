import t from 'tap'
import { isSandboxNumber } from '../../../src/providers/sandbox/numbers.ts'

t.test('sandbox numbers are the thousand that are kept for drama', async (t) => {
  for (const phone of ['+447700900000', '+447700900001', '+447700900999']) {
    t.ok(isSandboxNumber(phone), phone)
  }
  for (const phone of [
    ...['+447700899999', '+447700901000', '+4477009000000', '+44770090000', '+27821234567'],
    ...['447700900000', '+1447700900000', '+447700900000\n', ''],
  ]) {
    t.notOk(isSandboxNumber(phone), phone)
  }
})
