/** Small files that are written once, as a whole; simultaneous callers share one. */
import { randomBytes, randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { SetupError } from '../errors.ts'
import { succeeds } from './poll.ts'

/** Returns the SECRET_KEY of embedded mode: 32 random bytes in base64, created once for each data folder. */
export const secretKey = (dataFolder: string): Promise<string> =>
  keepOnce(dataFolder, 'secret-key', randomBytes(32).toString('base64'))

/** Writes a secret to a file of the data folder unless the file exists. Returns the content of the file. */
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
    const hint = 'start as the user who owns it, or set POSTGRAM_DATA to another folder.'
    throw new SetupError(`The data folder ${folder} cannot be used: ${hint}`, { cause })
  }
}

/** Creates a file with all of its content at once. Returns false if it exists already. */
export const writeOnce = async (file: string, content: string, mode = 0o600): Promise<boolean> => {
  const draft = `${file}.${randomUUID()}`
  await fs.writeFile(draft, content, { mode, flush: true })
  const isFirst = await succeeds(fs.link(draft, file))
  await fs.rm(draft)
  return isFirst
}

/** Returns the content of a file, or `otherwise` if there is no file. */
export const readOr = async (file: string, otherwise: string): Promise<string> => {
  try {
    return await fs.readFile(file, 'utf8')
  } catch (error) {
    // ESRCH: the process of a file in /proc has ended.
    if (/ENOENT|ESRCH/.test(`${(error as NodeJS.ErrnoException).code}`)) return otherwise
    throw error
  }
}
