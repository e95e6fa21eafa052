/** Small files that are made once, whole, and kept: also callers at the same moment share one. */
import { randomBytes, randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { SetupError } from '../errors.ts'
import { succeeds } from './attempt.ts'

/** The SECRET_KEY of embedded mode: 32 random bytes in base64, made once per data folder. */
export const secretKey = (dataFolder: string): Promise<string> =>
  keepOnce(dataFolder, 'secret-key', randomBytes(32).toString('base64'))

/** Keeps a secret in a file of the data folder unless it is there already; answers what is kept. */
export const keepOnce = async (
  dataFolder: string,
  name: string,
  content: string,
): Promise<string> => {
  const folder = resolve(dataFolder)
  try {
    await fs.mkdir(folder, { recursive: true })
    await writeOnce(join(folder, name), content)
    return await fs.readFile(join(folder, name), 'utf8')
  } catch (cause) {
    const cure = 'start as the user who owns it, or set POSTGRAM_DATA to another folder.'
    throw new SetupError(`The data folder ${folder} cannot be used: ${cure}`, { cause })
  }
}

/** Makes a file with all of its content at once; false when it is there already. */
export const writeOnce = async (file: string, content: string, mode = 0o600): Promise<boolean> => {
  const draft = `${file}.${randomUUID()}`
  await fs.writeFile(draft, content, { mode, flush: true })
  const isFirst = await succeeds(fs.link(draft, file))
  await fs.rm(draft)
  return isFirst
}

/** The content of a file, or `otherwise` when there is none. */
export const readOr = async (file: string, otherwise: string): Promise<string> => {
  try {
    return await fs.readFile(file, 'utf8')
  } catch (error) {
    // ESRCH is how /proc says that the process ended meanwhile. With anything else we do not know.
    if (/ENOENT|ESRCH/.test(`${(error as NodeJS.ErrnoException).code}`)) return otherwise
    throw error
  }
}
