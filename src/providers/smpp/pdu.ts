import { PDU } from 'smpp'

/** A PDU as it came. What cannot be read has the command `unreadable`, one that nobody knows `unknown`. */
export type Pdu = {
  command: string
  status: number
  sequence: number
  isResponse: boolean
  fields: Fields
}

/** Those that are read. A peer may leave any of them out. */
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

/** A header, of which each PDU consists at least. */
const MIN_PDU_BYTES = 16

/** What the codec reads at most; no message of ours or to us comes near it. */
const MAX_PDU_BYTES = 16_384

const RESPONSE = 0x80000000

/**
 * The codec without what it makes of texts, times and headers by itself: it takes GSM-7 for IA5 and
 * fails on what it has read. Octets stay octets here.
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

/** Read one whole PDU. Never throws. */
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

/** Cuts what comes over a connection into PDUs. */
export class Framer {
  #rest: Buffer = Buffer.alloc(0);

  /** The PDUs that are complete with this chunk. Throws where the next one cannot be found any more. */
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
