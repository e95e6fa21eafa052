import { SetupError } from '../setup-error.ts'

export const USAGE = `usage: npm start [-- --only api|worker|clock]     run the service
       npm run migrate [-- --breaking]            bring the database to this version
       npm run seed                               make a demo organisation, print its keys
       npm run sql -- "select * from ops.help"    ask the database, print a table; --write may change it
       npm run doctor                             check everything, print each fix
       npm run types                              regenerate src/db/api.gen.ts`

/** A command that is not given as it should be. */
export class UsageError extends SetupError {}
