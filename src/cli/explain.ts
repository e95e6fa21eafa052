import type { Config } from '../config/index.ts'
import { connectionProblem } from '../db/connection-problem.ts'
import { SetupError } from '../errors.ts'

/** Does work on a database. If the database cannot be used, throws SetupError: one line that names its setting. */
export async function namingSetting<Result>(
  setting: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const problem = error instanceof SetupError ? null : connectionProblem(error)
    if (problem === null) throw error
    throw new SetupError(`${setting}: ${problem}`, { cause: error })
  }
}

type ListenError = { code: string; syscall?: string; address?: string; port?: number }

/** Says in one line why an HTTP server of this process cannot listen; null for any other error. */
export function listenProblem(
  error: unknown,
  { host, metricsPort }: Pick<Config, 'host' | 'metricsPort'>,
): string | null {
  const { code, syscall, address, port } = error as ListenError
  if (syscall === 'getaddrinfo') return `HOST: ${host} cannot be resolved (${code})`
  if (syscall !== 'listen') return null
  if (code === 'EADDRNOTAVAIL')
    return `HOST: ${address} is not an address of this machine (${code})`
  const setting = port === metricsPort ? 'METRICS_PORT' : 'PORT'
  const reason = code === 'EADDRINUSE' ? 'is in use' : 'may not be used by this user'
  return `${setting}: ${address}:${port} ${reason} (${code})`
}
