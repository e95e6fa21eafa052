import type { Secrets } from './crypto/secrets.ts'
import type { Call } from './db/call.ts'
import { SetupError } from './errors.ts'
import { isOpenedBy } from './webhooks/secrets.ts'

/**
 * Throws SetupError when SECRET_KEY opens nothing of what is needed to send: a worker would then hold back
 * all mail through a relay and sign no webhook. One that opens a part is a matter for the doctor.
 */
export async function checkSecretKey(call: Call, secrets: Secrets): Promise<void> {
  const sealed = await call('sealed_in_use', {})
  if (sealed.length === 0 || sealed.some((text) => isOpenedBy(secrets, text))) return
  throw new SetupError(
    'SECRET_KEY: it opens nothing that is sealed in this database; set the key of that time, see /docs/deployment#secret-key',
  )
}
