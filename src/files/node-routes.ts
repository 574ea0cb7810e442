import { z } from 'zod'
import type { Core } from '../core.ts'
import { messages, unavailable } from '../errors.ts'
import { like, withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'

const route = routesOf('Files')

/** The public network's node, so that others can peer with it. The private network's node has no peers. */
export function nodeRoutes({ workers }: Core): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/ipfs/node',
      id: 'getIpfsNode',
      summary: 'Get the identity and addresses of the public IPFS node',
      description:
        'If your own node is connected to one of `addresses`, Berth immediately finds the content that you ask it to pin.',
      scope: 'org:files:read',
      success: {
        description: 'The node.',
        body: z.object({
          data: z.object({
            driver: z.enum(['kubo', 'cluster', 'embedded']),
            agent: like('kubo/0.43.0'),
            peer_id: like('12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp').nullable(),
            addresses: withExample(z.array(z.string()), [
              '/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp',
            ]),
            repo_bytes: like(734_003_200).nullable(),
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
