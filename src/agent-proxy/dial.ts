/** From a destination to a connection: resolve once, check, connect to the checked address. */
import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { type BlockList, isIP, connect as openSocket, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { passTo } from '../../agentd/relay.ts'
import { isPrivateAddress, toIPv4 } from '../lib/net/ip-address.ts'
import { orAborted, withDeadline } from '../lib/signals.ts'
import { type Destination, formatDestination } from './destination.ts'

/** Why a client is refused: the response's status and text. */
export class ProxyError extends Error {
  override name = 'ProxyError'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<LookupAddress[]>

export interface DialOptions {
  /** True if the destination may be reached even though its addresses are private. */
  isAllowed: boolean
  /** Maximum time to resolve and connect. */
  connectMs: number
  resolve: Resolve
  /** Addresses that are refused like private ones. */
  refused?: BlockList
  /** The socket that receives all bytes if nothing else reads them. */
  to?: Socket
}

/**
 * Connects to a destination. The name is resolved once, and the connection goes to the checked addresses, so that a
 * second lookup cannot return a different address (DNS rebinding). A single address that is not public refuses the
 * whole name, unless the destination is allowed by name.
 * @throws ProxyError 403 refused, 502 unreachable, 504 too slow.
 */
export async function dial(destination: Destination, options: DialOptions): Promise<Socket> {
  const name = formatDestination(destination)
  const late = () => new ProxyError(504, `${name} did not answer in time`)
  try {
    return await withDeadline({ ms: options.connectMs, late }, async (signal) => {
      const addresses = await orAborted(findAddresses(destination.host, options.resolve), signal)
      if (!options.isAllowed && addresses.some(({ address }) => isInside(address, options.refused)))
        throw new ProxyError(403, `${name} is not on the public internet`)
      return await connect(destination, addresses, options.to, signal)
    })
  } catch (error) {
    if (error instanceof ProxyError) throw error
    const { code = 'no connection' } = error as NodeJS.ErrnoException
    throw new ProxyError(502, `${name} cannot be reached: ${code}`)
  }
}

/** Names that always mean this machine, though not every resolver knows them (RFC 6761, 6.3). */
const LOCALHOST = /(^|\.)localhost\.?$/
const LOOPBACK = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/** The resolver of this machine, including its hosts file. */
export const resolveBySystem: Resolve = (name) =>
  new Promise((resolve, reject) => {
    if (LOCALHOST.test(name)) return resolve(LOOPBACK)
    systemLookup(name, { all: true }, (error, found) => (error ? reject(error) : resolve(found)))
  })

/** Resolves a name by DNS only: system lookups share four threads, which a slow name server would block. */
export const resolveByDns: Resolve = async (name) => {
  if (LOCALHOST.test(name)) return LOOPBACK
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason
  return [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ]
}

async function findAddresses(host: string, resolve: Resolve): Promise<LookupAddress[]> {
  const family = isIP(host)
  const found = family ? [{ address: host, family }] : await resolve(host)
  if (found.length === 0) throw Object.assign(new Error('no address'), { code: 'ENOTFOUND' })
  return found
}

/**
 * True for addresses that are not public, and for addresses of this machine: from here they would reach services that a
 * firewall in front of the machine hides from the internet.
 */
function isInside(address: string, refused?: BlockList): boolean {
  if (isPrivateAddress(address)) return true
  const plain = toIPv4(address) ?? address
  if (refused?.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')) return true
  return Object.values(networkInterfaces()).some((all) => all?.some((own) => own.address === plain))
}

function connect(
  { host, port }: Destination,
  addresses: LookupAddress[],
  to: Socket | undefined,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket: Socket = openSocket({
      host,
      port,
      allowHalfOpen: true,
      autoSelectFamily: true,
      ...(to && { onread: passTo(to, () => socket.resume()) }),
      lookup: (_name, _options, found) => found(null, addresses),
    })
    const abort = () => socket.destroy(new Error('aborted'))
    signal.addEventListener('abort', abort, { once: true })
    // Stays attached: an error after connecting ends in a `close`, which the socket's users see.
    socket.on('error', reject)
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort)
      resolve(socket)
    })
  })
}
