/** Messages name commands as npm scripts. These functions replace them by the commands of this installation. */
import { relative } from 'node:path'
import type { Launch } from '../config/launch.ts'

/**
 * Returns the words in front of a command: those of POSTGRAM_COMMAND, or node with the script and the environment
 * files that this process was started with. Null if npm runs the commands.
 */
export function commandPrefix({ commandWords, isRunByNpm }: Launch): string | null {
  if (commandWords !== null) return commandWords
  if (isRunByNpm) return null
  const path = process.argv[1] ?? 'src/main.ts'
  const inside = relative(process.cwd(), path)
  const files = process.execArgv.filter((flag) => /^--env-file/.test(flag))
  return ['node', ...files, inside.startsWith('..') ? path : inside].map(quoted).join(' ')
}

/** Returns the text with each npm script replaced by the command that does the same here. */
export function withCommands(prefix: string | null, text: string): string {
  if (prefix === null) return text
  return text.replace(
    /\bnpm (?:run )?(start|migrate|seed|login|sql|doctor|join|leave|types|<command>)(?:( \[?)-- )?/g,
    (_, name: string, before = '') => `${prefix} ${name}${before}`,
  )
}

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`)
