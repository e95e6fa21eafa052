import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ownQueues } from './own-queues.ts'
import { queueRights } from './queue-rights.ts'

const SQL_FOLDER = fileURLToPath(new URL('../../../sql/', import.meta.url))

/** The schemas that every migrate drops and creates again. */
export const CODE_SCHEMAS = ['core', 'api', 'ops'] as const

export type SqlFile = { name: string; text: string }

/**
 * Returns the files of a folder of sql/ in the order of their names; a name begins with the folder. Reads them
 * synchronously, which takes a sixth of the time: each start reads all of them.
 */
export function readFolder(folder: string): SqlFile[] {
  return readdirSync(SQL_FOLDER + folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({
      name: `${folder}/${name}`,
      text: readFileSync(`${SQL_FOLDER}${folder}/${name}`, 'utf8'),
    }))
}

/** Returns the ids of this version's migrations, as in app.migrations. */
export function migrationIds(): Set<string> {
  return new Set(readFolder('migrations').map(({ name }) => migrationId(name)))
}

/** Returns the id of a migration in app.migrations. */
export function migrationId(name: string): string {
  return name.slice('migrations/'.length, -'.sql'.length)
}

/**
 * Returns the SHA-256 of this version's SQL code, which api.health() returns for the code in the database. It covers
 * the versions of the queues' schemas and the rights on them, so that a version that changes only those differs.
 */
export async function codeSha256(): Promise<string> {
  const files = [...CODE_SCHEMAS, 'migrations'].flatMap(readFolder)
  const hash = createHash('sha256')
  for (const { name, text } of files) hash.update(`${name}\0${text}\0`)
  hash.update(JSON.stringify(await ownQueues()) + queueRights)
  return hash.digest('hex')
}
