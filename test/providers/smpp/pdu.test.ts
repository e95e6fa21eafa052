import fc from 'fast-check'
import t from 'tap'
import { decode, encode, Framer } from '../../../src/providers/smpp/pdu.ts'

const pdus = [
  encode('enquire_link', 1),
  encode('submit_sm_resp', 2, { message_id: 'A1' }),
  encode('deliver_sm', 3, { source_addr: '27820000000', short_message: Buffer.from('STOP') }),
  encode('generic_nack', 4, { command_status: 3 }),
]

/** Returns all PDUs of a stream in these chunks. */
function framesOf(chunks: Buffer[]): Buffer[] {
  const framer = new Framer()
  return chunks.flatMap((chunk) => [...framer.push(chunk)])
}

t.test('Framer: PDUs are found wherever the stream is split', (t) => {
  const stream = Buffer.concat(pdus)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: stream.length })), (cuts) => {
      const ends = [...cuts.sort((a, b) => a - b), stream.length]
      const chunks = ends.map((end, index) => stream.subarray(ends[index - 1] ?? 0, end))
      const frames = framesOf(chunks)
      return frames.length === pdus.length && Buffer.concat(frames).equals(stream)
    }),
  )
  t.end()
})

t.test('Framer: an invalid length throws after the PDUs before it', (t) => {
  for (const length of [0, 4, 15, 16_385, 0x7fffffff, 0xffffffff]) {
    const header = Buffer.alloc(16)
    header.writeUInt32BE(length)
    const frames = new Framer().push(Buffer.concat([pdus[0] as Buffer, header]))
    t.strictSame(frames.next().value, pdus[0])
    t.throws(() => frames.next(), { message: `it sent a PDU of ${length} octets` })
  }
  t.end()
})

t.test('decode(): octets of texts are not converted', (t) => {
  const octets = Buffer.from([5, 0, 3, 1, 2, 1, 0x1b, 0x65, 0, 0x80])
  const fields = { esm_class: 0x40, data_coding: 0, short_message: octets }
  t.match(decode(encode('deliver_sm', 7, fields)), {
    command: 'deliver_sm',
    status: 0,
    sequence: 7,
    isResponse: false,
    fields: { esm_class: 0x40, data_coding: 0, short_message: octets },
  })
  t.end()
})

t.test('decode(): returns `unknown` or `unreadable` and never throws', (t) => {
  const unknown = Buffer.from('00000010000000990000000000000007', 'hex')
  t.match(decode(unknown), { command: 'unknown', sequence: 7, isResponse: false })
  const broken = Buffer.from('0000001400000015000000000000000804270001', 'hex')
  t.match(decode(broken), { command: 'unreadable', sequence: 8, isResponse: false })
  fc.assert(
    fc.property(
      fc.constantFrom(4, 5, 9, 0x15, 0x103, 0x80000004, 0x80000000),
      fc.uint8Array({ maxLength: 300 }),
      (command, body) => {
        const header = Buffer.alloc(16)
        header.writeUInt32BE(16 + body.length)
        header.writeUInt32BE(command, 4)
        header.writeUInt32BE(9, 12)
        return decode(Buffer.concat([header, body])).sequence === 9
      },
    ),
    { numRuns: 2000 },
  )
  t.end()
})
