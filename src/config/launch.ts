import * as v from 'valibot'
import { type Environment, withoutEmpty } from './environment.ts'

/** How this process was started. */
export type Launch = {
  /** POSTGRAM_COMMAND: the words in front of a command; null when it is not set. */
  commandWords: string | null
  /** Whether npm runs the command as its script of that name, and so is the parent of this process. */
  isRunByNpm: boolean
}

/** Every value of these variables is valid. */
export const launchVariables = v.object({
  POSTGRAM_COMMAND: v.optional(v.string()),
  /** npm sets it to the name of the script. */
  npm_lifecycle_event: v.optional(v.string()),
})

/** Returns how `command` was started. Works also when settings are invalid. */
export function readLaunch(env: Environment, command: string): Launch {
  const variables = v.parse(launchVariables, withoutEmpty(env))
  return {
    commandWords: variables.POSTGRAM_COMMAND ?? null,
    // Every process that a script starts inherits the variable, and may outlive the script.
    isRunByNpm: variables.npm_lifecycle_event === command,
  }
}
