import { isIP } from 'node:net'
import { HOST_MACHINE } from './host-machine.ts'
import { isPrivateAddress } from './ip-address.ts'

/** True for a server on this machine or in a private network. */
export function isLocalUrl(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host)) return isPrivateAddress(host)
  return !host.includes('.') || host === HOST_MACHINE || host.endsWith('.local')
}
