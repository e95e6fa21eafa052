export const USAGE = `usage: npm start [-- --only api|worker|clock]     run the service
       npm run migrate [-- --breaking]            bring the database to this version
       npm run seed                               make a demo organisation, print its keys
       npm run sql -- "select * from ops.help"    ask the database, print a table
       npm run doctor                             check everything, say the cures
       npm run types                              write src/db/api.gen.ts anew`

/** Something the person at the keyboard can mend: printed as it is, without a stack. */
export class UsageError extends Error {}

/** What the system says when no database answers or the port is taken. */
export const MENDABLE = /^(ECONNREFUSED|ENOTFOUND|EADDRINUSE|EADDRNOTAVAIL|EACCES)$/
