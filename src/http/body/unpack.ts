import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

/** What Content-Encoding names (RFC 9110, section 8.4.1). */
export type Encoding = keyof typeof decoders

/** Larger pieces than the library's 16 KB: each comes back through the event loop. */
const CHUNK_BYTES = 64 * 1024

const decoders = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/** The body has more bytes than allowed. */
export class TooLarge extends Error {}

/** Whether a name in Content-Encoding, in lower case, is one that this service unpacks. */
export function isEncoding(name: string): name is Encoding {
  return Object.hasOwn(decoders, name)
}

/** Unpacks outside the event loop; throws TooLarge beyond `maxBytes`, and otherwise what zlib finds wrong. */
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
