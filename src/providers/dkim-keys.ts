import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import type { Secrets } from '../crypto/secrets.ts'
import type { DkimKey } from '../db/api.gen.ts'

/** RFC 8301 recommends at least 2048. Longer keys do not fit the TXT fields of many DNS hosts. */
const BITS = 2048

const generateKeyPairAsync = promisify(generateKeyPair)

/** Generates a DKIM key with a sealed private key; `value` is as in RFC 6376 3.6.1. */
export async function makeDkimKey(
  secrets: Secrets,
  selector: string,
  state: DkimKey['state'],
): Promise<DkimKey> {
  const { publicKey, privateKey } = await generateKeyPairAsync('rsa', {
    modulusLength: BITS,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return {
    selector,
    state,
    value: `v=DKIM1; k=rsa; p=${publicKey.toString('base64')}`,
    private_key: secrets.seal(privateKey),
  }
}
