/** The watcher of users.ts runs this after its process was killed. Arguments: the data folder and the user's file. */
import { removeUser } from './users.ts'

/** How long pg_ctl may take until the server that it starts has its pid file. */
const APPEARS_WITHIN_MS = 1000

const [folder = '', file = ''] = process.argv.slice(2)
await removeUser(folder, file, APPEARS_WITHIN_MS)
