import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { ownQueues } from './own-queues.ts'
import { queueRights } from './queue-rights.ts'

const SQL_FOLDER = fileURLToPath(new URL('../../../sql/', import.meta.url))

/** The schemas that every migrate drops and creates again. */
export const CODE_SCHEMAS = ['core', 'api', 'ops'] as const

export type SqlFile = { name: string; text: string }

/** Returns the files of a folder of sql/ in the order of their names; a name begins with the folder. */
export async function readFolder(folder: string): Promise<SqlFile[]> {
  const names = (await readdir(SQL_FOLDER + folder)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => ({
      name: `${folder}/${name}`,
      text: await readFile(`${SQL_FOLDER}${folder}/${name}`, 'utf8'),
    })),
  )
}

/** Returns the ids of this version's migrations, as in app.migrations. */
export async function migrationIds(): Promise<Set<string>> {
  return new Set((await readFolder('migrations')).map(({ name }) => migrationId(name)))
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
  const files = await Promise.all([...CODE_SCHEMAS, 'migrations'].map(readFolder))
  const hash = createHash('sha256')
  for (const { name, text } of files.flat()) hash.update(`${name}\0${text}\0`)
  hash.update(JSON.stringify(await ownQueues()) + queueRights)
  return hash.digest('hex')
}
