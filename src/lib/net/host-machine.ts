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
