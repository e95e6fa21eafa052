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

/** The decompressed body has more bytes than allowed. */
export class TooLarge extends Error {}

/** Whether a lower-case name in Content-Encoding is supported. */
export function isEncoding(name: string): name is Encoding {
  return Object.hasOwn(decoders, name)
}

/** Decompresses in a thread of zlib; throws TooLarge beyond `maxBytes`, or an error of zlib. */
export async function unpack(
  packed: Buffer,
  encoding: Encoding,
  maxBytes: number,
): Promise<Buffer> {
  const options = { maxOutputLength: maxBytes, chunkSize: CHUNK_BYTES }
  try {
    return await decoders[encoding](packed, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw new TooLarge()
    throw error
  }
}
