import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('host-node.program.ts', import.meta.url))

/** The node that has the content; Berth gets its address as a host node. */
export interface HostNode {
  /** The root of the folder. */
  cid: string
  /** Its multiaddr, which ends in `/p2p/<peer id>`. */
  address: string
  stop(): Promise<void>
}

/** Starts an embedded IPFS node in a separate process and adds a folder to it. */
export async function startHostNode(options: {
  dir: string
  folder: string
  stack: AsyncDisposableStack
  signal: AbortSignal
}): Promise<HostNode> {
  const { dir, folder, stack, signal } = options
  const node = fork(PROGRAM, [dir, folder], { detached: true })
  const exited = once(node, 'exit')
  const stop = async () => {
    node.kill()
    await exited
  }
  stack.defer(stop)
  const ended = exited.then(([code]) => {
    throw new Error(`The second node ended with code ${code}`)
  })
  ended.catch(() => {})
  const [ready] = (await Promise.race([once(node, 'message', { signal }), ended])) as [
    { cid: string; address: string },
  ]
  return { ...ready, stop }
}
