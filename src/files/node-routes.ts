import { z } from 'zod'
import { messages, unavailable } from '../errors.ts'
import { type Route, route } from '../http/route.ts'
import type { WorkerStatus } from '../operations/worker-status.ts'

/** The public network's node, so that others can peer with it. The private network's node has no peers. */
export function nodeRoutes(workers: WorkerStatus): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/ipfs/node',
      id: 'getIpfsNode',
      tag: 'Files',
      summary: 'Get the identity and addresses of the public IPFS node',
      description:
        'If your own node is connected to one of `addresses`, Berth immediately finds the content that you ask it to pin.',
      scope: 'org:files:read',
      success: {
        status: 200,
        description: 'The node.',
        body: z.object({
          data: z.object({
            driver: z.enum(['kubo', 'embedded']),
            agent: z.string(),
            peer_id: z.string().nullable(),
            addresses: z.array(z.string()),
            repo_bytes: z.number().nullable(),
          }),
        }),
      },
      errors: [503],
      async handle() {
        const { ipfs } = await workers.read()
        if (!ipfs || ipfs.error) throw unavailable(messages.ipfsUnreachable, ipfs?.error)
        const { driver, agent, peerId, addresses, repoBytes } = ipfs
        return { body: { data: { driver, agent, peer_id: peerId, addresses, repo_bytes: repoBytes } } }
      },
    }),
  ]
}
