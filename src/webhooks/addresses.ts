import { BlockList, isIP } from 'node:net'

/**
 * Networks without public hosts: IANA's registries of special-purpose addresses (RFC 6890), including
 * blocks that the registries call globally reachable but that hold anycast services, and multicast.
 */
const SPECIAL_IPV4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared with carriers; clouds run internal services here
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // not in the registries: services of Azure, on each of its machines
  '169.254.0.0/16', // link-local; clouds serve instance metadata here
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
]

/**
 * In IPv6 only global unicast is public. This excludes loopback, link-local, unique local and multicast
 * addresses, and every form that embeds an IPv4 address: mapped, compatible and NAT64.
 */
const GLOBAL_UNICAST_IPV6 = ['2000::/3']

const SPECIAL_IPV6 = [
  '2001::/23', // protocol assignments: Teredo, ORCHID and others
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which embeds an IPv4 address
  '3fff::/20', // documentation
]

const special = blocks([...SPECIAL_IPV4, ...SPECIAL_IPV6])
const globalUnicast = blocks(GLOBAL_UNICAST_IPV6)

/** Whether anyone on the Internet could reach an IP address. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special.check(address, 'ipv4')
    case 6:
      return globalUnicast.check(address, 'ipv6') && !special.check(address, 'ipv6')
    default:
      return false
  }
}

function blocks(subnets: readonly string[]): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network = '', prefix] = subnet.split('/')
    list.addSubnet(network, Number(prefix), isIP(network) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
