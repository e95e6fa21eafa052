import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import type { Secrets } from '../crypto/secrets.ts'
import type { DkimKey } from './email.ts'

/** RFC 8301 asks for 2048 at least; a longer one does not fit the strings of many DNS panels. */
const BITS = 2048

const makePair = promisify(generateKeyPair)

/** A new DKIM key that we sign with ourselves, its private half sealed (RFC 6376 3.6.1 for `value`). */
export async function makeDkimKey(
  secrets: Secrets,
  selector: string,
  state: DkimKey['state'],
): Promise<DkimKey> {
  const { publicKey, privateKey } = await makePair('rsa', {
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
