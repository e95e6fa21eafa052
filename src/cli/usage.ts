import { SetupError } from '../errors.ts'

export const USAGE = `usage: npm run <command> [-- <arguments>]

  start [--only api|worker|clock]    run the service
  migrate [--breaking]               bring the database to this version
  seed                               make a demo organisation, print its keys
  sql [--write] "select …"           ask the database, print a table; --write may change it
  doctor [--strict]                  check everything, print each fix; exit 1 on problems,
                                     with --strict on warnings too
  types                              regenerate src/db/api.gen.ts`

/** A command that is not given as it should be. */
export class UsageError extends SetupError {}
