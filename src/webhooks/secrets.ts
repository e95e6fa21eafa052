import {
  constants,
  createHash,
  createPrivateKey,
  generateKeyPair,
  type KeyObject,
  privateDecrypt,
} from 'node:crypto'
import { promisify } from 'node:util'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'

const MODULUS_BITS = 2048

/** So many opened secrets are remembered, as opening one takes a third of a millisecond. */
const MAX_REMEMBERED = 10_000

/**
 * Sees to it that psql can make signing secrets which we can open (core.make_secret): keeps an RSA key,
 * sealed with SECRET_KEY, unless there is one already. Of several SECRET_KEYs the first seals those of
 * the others anew, so that these can be dropped. One that none of them opens is followed by a new one;
 * what it sealed stays shut until the SECRET_KEY of that time is set as well.
 */
export async function prepareSealing(call: Call, secrets: Secrets): Promise<void> {
  const kept = await call('sealing_keys', {})
  for (const { id, privateKey } of kept) {
    const resealed = isOpenedBy(secrets, privateKey) ? secrets.reseal(privateKey) : null
    if (resealed) await call('reseal_sealing_key', { id, private_key: resealed })
  }
  const [newest] = kept
  if (newest && isOpenedBy(secrets, newest.privateKey)) return
  const pair = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS })
  const { n = '' } = pair.publicKey.export({ format: 'jwk' })
  const privateKey = pair.privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
  await call('store_sealing_key', {
    modulus: BigInt(`0x${Buffer.from(n, 'base64url').toString('hex')}`).toString(),
    private_key: secrets.seal(privateKey),
    ...(newest && { newest: newest.id }),
  })
}

/** Whether SECRET_KEY is one that a text was sealed with. */
export function isOpenedBy(secrets: Secrets, sealed: string): boolean {
  return secrets.keyOf(sealed) !== null
}

/** A signing secret that stays shut until an operator does something. */
export class UnopenableSecret extends Error {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(
      `it could not be signed: ${reason}; set the SECRET_KEY of that time behind the present one, or rotate the endpoint's secret`,
      { cause },
    )
  }
}

/**
 * Opens the signing secrets that core.make_secret sealed; throws UnopenableSecret when SECRET_KEY is
 * not what it was, and other errors when the database cannot be asked.
 */
export function createSecretOpener(
  call: Call,
  secrets: Secrets,
): (sealed: string) => Promise<string> {
  const keys = new Map<string, Promise<KeyObject>>()
  const opened = new Map<string, Promise<string>>()

  async function keyOf(id: string): Promise<KeyObject> {
    const row = (await call('sealing_keys', {})).find((key) => key.id === id)
    return unopenable(() => {
      if (!row) throw new Error('the key that its signing secret was sealed with is gone')
      const der = Buffer.from(secrets.open(row.privateKey), 'base64')
      return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    })
  }

  async function secretIn(sealed: string): Promise<string> {
    const [id = '', power = ''] = sealed.split('.')
    const key = await remembered(keys, id, keyOf)
    return unopenable(() => secretOf(decrypt(key, BigInt(power))))
  }

  return (sealed) => remembered(opened, sealed, secretIn)
}

/** What is made for one is for all who ask meanwhile and later; a failure is for those alone. */
function remembered<Value>(
  kept: Map<string, Promise<Value>>,
  name: string,
  make: (name: string) => Promise<Value>,
): Promise<Value> {
  const known = kept.get(name)
  if (known) return known
  const made = make(name)
  // The oldest goes; which one hardly matters.
  const [oldest] = kept.keys()
  if (kept.size >= MAX_REMEMBERED && oldest !== undefined) kept.delete(oldest)
  kept.set(name, made)
  made.catch(() => kept.delete(name))
  return made
}

function unopenable<Result>(open: () => Result): Result {
  try {
    return open()
  } catch (error) {
    throw new UnopenableSecret(error)
  }
}

function decrypt(key: KeyObject, power: bigint): bigint {
  const bytes = Buffer.from(power.toString(16).padStart(MODULUS_BITS / 4, '0'), 'hex')
  const plain = privateDecrypt({ key, padding: constants.RSA_NO_PADDING }, bytes)
  return BigInt(`0x${plain.toString('hex')}`)
}

/** As core.make_secret derives it. */
function secretOf(number: bigint): string {
  return `whsec_${createHash('sha256').update(number.toString()).digest('hex')}`
}
