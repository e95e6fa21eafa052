import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { ownQueues } from './own-queues.ts'
import { queueRights } from './queue-rights.ts'

const SQL_FOLDER = fileURLToPath(new URL('../../../sql/', import.meta.url))

/** The schemas that are dropped and made anew at every migrate. */
export const CODE_SCHEMAS = ['core', 'api', 'ops'] as const

export type SqlFile = { name: string; text: string }

/** The files of a folder of sql/, in the order of their names, each named from there. */
export async function readFolder(folder: string): Promise<SqlFile[]> {
  const names = (await readdir(SQL_FOLDER + folder)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => ({
      name: `${folder}/${name}`,
      text: await readFile(`${SQL_FOLDER}${folder}/${name}`, 'utf8'),
    })),
  )
}

/** The names of this version's migrations, as app.migrations has them. */
export async function migrationIds(): Promise<Set<string>> {
  return new Set((await readFolder('migrations')).map(({ name }) => migrationId(name)))
}

/** Returns the name of a migration in app.migrations, by that of its file. */
export function migrationId(name: string): string {
  return name.slice('migrations/'.length, -'.sql'.length)
}

/**
 * The SHA-256 of the SQL code that belongs to this version; compare with api.health(). The queues' own
 * schemas and the rights on them count as well, so that a version which has only them anew is known as another.
 */
export async function codeSha256(): Promise<string> {
  const files = await Promise.all([...CODE_SCHEMAS, 'migrations'].map(readFolder))
  const hash = createHash('sha256')
  for (const { name, text } of files.flat()) hash.update(`${name}\0${text}\0`)
  hash.update(JSON.stringify(await ownQueues()) + queueRights)
  return hash.digest('hex')
}
