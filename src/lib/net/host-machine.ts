import { isIPv4 } from 'node:net'
import { isPrivateAddress } from './ip-address.ts'

/**
 * The name of the machine itself for containers, whose own loopback is different. The egress proxy maps the name to its
 * own loopback, so agents in Docker can reach what the operator allows there.
 */
export const HOST_MACHINE = 'host.docker.internal'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** A URL of this machine, rewritten for use in a container; other URLs stay unchanged. */
export function fromContainer(text: string): string {
  const url = new URL(text)
  if (!LOOPBACK.includes(url.hostname)) return text
  url.hostname = HOST_MACHINE
  return url.href
}

/** The name of the model gateway for containers. The egress proxy serves it itself. */
export const MODEL_HOST = 'model.berth.internal'

/**
 * The URL of the operator's model, rewritten for use in a container. Before a task, the engine checks a model at a
 * private address or below `.local` by calling it directly, bypassing the egress proxy. That fails, and the task is
 * skipped. The engine does not do so for other names. With https the name has to stay, because the certificate is for
 * it.
 */
export function modelFromContainer(text: string): string {
  const url = new URL(fromContainer(text))
  const isLocal = (isIPv4(url.hostname) && isPrivateAddress(url.hostname)) || url.hostname.endsWith('.local')
  if (url.protocol !== 'http:' || !isLocal) return fromContainer(text)
  url.hostname = MODEL_HOST
  return url.href
}
