/** What the watcher of users.ts runs once its process was killed: the folder, and the user's file. */
import { removeUser } from './users.ts'

/** So long pg_ctl may take until the server that it starts has its pid file. */
const APPEARS_WITHIN_MS = 1000

const [folder = '', file = ''] = process.argv.slice(2)
await removeUser(folder, file, APPEARS_WITHIN_MS)
