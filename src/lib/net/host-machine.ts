import { isIPv4 } from 'node:net'
import { isPrivateAddress } from './ip-address.ts'

/**
 * The machine itself, as containers name it: their own loopback is another one. The egress proxy knows the name and
 * takes it for its own loopback, so agents in Docker reach there what the operator allows.
 */
export const HOST_MACHINE = 'host.docker.internal'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** A URL of this machine as a container has to write it; others stay as they are. */
export function fromContainer(text: string): string {
  const url = new URL(text)
  if (!LOOPBACK.includes(url.hostname)) return text
  url.hostname = HOST_MACHINE
  return url.href
}

/** The operator's model where its address is private, as containers name it. The egress proxy knows the name. */
const MODEL_HOST = 'model.berth.internal'

/**
 * The operator's model as containers have to write it. Before a task, the engine calls a model at a private address or
 * below `.local` to see whether it is there, past the egress proxy: it fails, and the task is skipped. It does not do so
 * for another name. With https the name has to stay, as the certificate is for it.
 */
export function modelFromContainer(text: string): string {
  const url = new URL(fromContainer(text))
  const isLocal = (isIPv4(url.hostname) && isPrivateAddress(url.hostname)) || url.hostname.endsWith('.local')
  if (url.protocol !== 'http:' || !isLocal) return fromContainer(text)
  url.hostname = MODEL_HOST
  return url.href
}
