import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether a host, without brackets, is this machine: traffic to it does not leave the machine. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family !== 0) return loopback.check(host, family === 6 ? 'ipv6' : 'ipv4')
  return /^(?:[^.]+\.)*localhost\.?$/i.test(host)
}
