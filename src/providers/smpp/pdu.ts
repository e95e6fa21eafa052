import { PDU } from 'smpp'

/** A received PDU. A malformed one has the command `unreadable`, one with an unknown command id `unknown`. */
export type Pdu = {
  command: string
  status: number
  sequence: number
  isResponse: boolean
  fields: Fields
}

/** The fields that Postgram reads. A peer may omit any of them. */
export type Fields = {
  message_id?: string
  source_addr_ton?: number
  source_addr?: string
  dest_addr_ton?: number
  destination_addr?: string
  esm_class?: number
  data_coding?: number
  short_message?: Buffer
  message_payload?: Buffer
  receipted_message_id?: string
  message_state?: number
  network_error_code?: Buffer
}

/** The length of the header. */
const MIN_PDU_BYTES = 16

/** The codec's limit, far above the length of any SMS. */
const MAX_PDU_BYTES = 16_384

const RESPONSE = 0x80000000

/**
 * The codec without its conversion of texts, times and user data headers, which reads GSM-7 as IA5 and
 * fails on some input. Octets stay octets.
 */
class PlainPdu extends PDU {
  protected override _filter(): void {}
}

export function encode(
  command: string,
  sequence: number,
  fields: Record<string, unknown> = {},
): Buffer {
  return new PlainPdu(command, { ...fields, sequence_number: sequence }).toBuffer()
}

/** Reads one complete PDU. Never throws. */
export function decode(octets: Buffer): Pdu {
  const header = {
    status: octets.readUInt32BE(8),
    sequence: octets.readUInt32BE(12),
    isResponse: (octets.readUInt32BE(4) & RESPONSE) !== 0,
  }
  try {
    const pdu = new PlainPdu(octets)
    return { ...header, command: pdu.command, fields: pdu as Fields }
  } catch {
    return { ...header, command: 'unreadable', fields: {} }
  }
}

/** Splits the stream of a connection into PDUs. */
export class Framer {
  #rest: Buffer = Buffer.alloc(0);

  /** Yields the PDUs that this chunk completes. Throws if a length is invalid. */
  *push(chunk: Buffer): Generator<Buffer> {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    while (this.#rest.length >= 4) {
      const length = this.#rest.readUInt32BE(0)
      if (length < MIN_PDU_BYTES || length > MAX_PDU_BYTES) {
        throw new Error(`it sent a PDU of ${length} octets`)
      }
      if (this.#rest.length < length) return
      const octets = this.#rest.subarray(0, length)
      this.#rest = this.#rest.subarray(length)
      yield octets
    }
  }
}
