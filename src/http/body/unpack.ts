import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

/** A supported Content-Encoding (RFC 9110, 8.4.1). */
export type Encoding = keyof typeof decoders

/** More than the 16 KB of zlib's default: each chunk takes a pass through the event loop. */
const CHUNK_BYTES = 64 * 1024

const decoders = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/** Whether a lower-case name in Content-Encoding is supported. */
export function isEncoding(name: string): name is Encoding {
  return Object.hasOwn(decoders, name)
}

/** Decompresses in a thread of zlib; throws an error of zlib, also beyond `maxBytes`: see isTooLarge(). */
export function unpack(packed: Buffer, encoding: Encoding, maxBytes: number): Promise<Buffer> {
  return decoders[encoding](packed, { maxOutputLength: maxBytes, chunkSize: CHUNK_BYTES })
}

/** Whether unpack() threw because the decompressed body has more bytes than allowed. */
export function isTooLarge(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_BUFFER_TOO_LARGE'
}
