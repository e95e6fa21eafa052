/** Messages name commands as npm scripts. These functions turn them into commands of this installation. */
import { relative } from 'node:path'

/**
 * The words in front of a command: POSTGRAM_COMMAND, or node with the script and the environment files that
 * this process was started with. Null where npm runs the commands.
 */
export function commandPrefix(env: Record<string, string | undefined>): string | null {
  if (env.POSTGRAM_COMMAND) return env.POSTGRAM_COMMAND
  if (env.npm_lifecycle_event) return null
  const path = process.argv[1] ?? 'src/main.ts'
  const inside = relative(process.cwd(), path)
  const files = process.execArgv.filter((flag) => /^--env-file/.test(flag))
  return ['node', ...files, inside.startsWith('..') ? path : inside].map(quoted).join(' ')
}

/** A text in which each npm script is the command that does the same here. */
export function withCommands(prefix: string | null, text: string): string {
  if (prefix === null) return text
  return text.replace(
    /\bnpm (?:run )?(start|migrate|seed|sql|doctor|types|<command>)(?:( \[?)-- )?/g,
    (_, name: string, before = '') => `${prefix} ${name}${before}`,
  )
}

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`)
