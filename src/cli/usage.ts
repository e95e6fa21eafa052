export const USAGE = `usage: npm run <command> [-- <arguments>]

  start [--only api|worker|clock]    run the service
  migrate [--breaking]               bring the database to this version
  login ADDRESS                      print a link that signs in to the dashboard once
  seed [--demo]                      create a demo organisation, print its keys; --demo fills it
                                     with a month of messages
  sql [--write] "select …"           run a query, print a table; --write allows changes
  doctor [--strict]                  check the installation, print each fix; exit 1 on problems,
                                     with --strict also on warnings
  join ADDRESS                       keep the lists of another cell in step
  leave NUMBER [--force]             end that; --force if the other cell is gone
  types                              regenerate src/db/api.gen.ts`
