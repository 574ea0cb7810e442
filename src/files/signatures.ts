/**
 * Signatures of content: what the owner of a file signed with a wallet (EIP-712), for others to check. Berth stores
 * them and only checks their form: verifying would need the date in the signed message, which is not sent.
 */

import { z } from 'zod'
import type { PrismaClient } from '../db/prisma.ts'
import { ApiError, notFound } from '../errors.ts'
import { contentCid, like } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { network, nothing } from '../http/shapes.ts'
import { canonicalCid, parseCid } from './cid.ts'
import { PINNED } from './held-content.ts'
import type { FileServices } from './services.ts'

const route = routesOf('Signatures')
const PATH = '/v3/files/:network/signature/:cid'

const params = z.object({ network, cid: z.string().describe('The CID, in any spelling.') })
/** 65 bytes from a key pair, more from a contract wallet. */
const signature = like(`0x${'1ba6c2a8412dc9b0be37b013ea5bddd9'.repeat(4)}`).regex(
  /^0x([0-9a-fA-F]{2}){64,2048}$/,
  'must be 0x and 64 to 2048 bytes in hexadecimal',
)
const address = like('0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc').regex(
  /^0x[0-9a-fA-F]{40}$/,
  'must be 0x and 20 bytes in hexadecimal',
)

export const signatureRecord = z.object({
  cid: contentCid.describe('The CID as requested.'),
  signature,
  address: address.describe('The wallet that signed, according to its owner.'),
})
const success = { description: 'The signature.', body: z.object({ data: signatureRecord }) }

/** The signature of a workspace's content, or null. @param cid the spelling to return. */
export async function findSignature(
  prisma: PrismaClient,
  content: { workspaceId: string; network: string; cidV1: string },
  cid: string,
): Promise<z.output<typeof signatureRecord> | null> {
  const found = await prisma.cidSignature.findUnique({ where: { workspaceId_network_cidV1: content } })
  return found && { cid, signature: found.signature, address: found.address }
}

/** Signatures of a workspace's content. */
export function signatureRoutes({ prisma }: FileServices): Route[] {
  const unsigned = () => notFound('cid: has no signature')
  return [
    route({
      method: 'post',
      path: PATH,
      id: 'addSignature',
      summary: 'Add a signature to a CID',
      description:
        'The CID must be a file of the workspace without another signature. Berth checks the form, but not whether the ' +
        'address signed it: readers check that with the signed date.',
      scope: 'org:files:write',
      params,
      body: z.object({ signature, address }),
      success,
      errors: [404, 409],
      async handle({ principal: { workspaceId }, params: { network, cid }, body }) {
        const cidV1 = canonicalCid(parseCid(cid))
        const content = { workspaceId, network, cidV1 }
        const file = { ...content, ...PINNED }
        if (!(await prisma.file.count({ where: file }))) throw notFound('cid: not a file of this workspace')
        await prisma.cidSignature.createMany({ data: { ...content, ...body }, skipDuplicates: true })
        const data = await findSignature(prisma, content, cid)
        if (!data) throw unsigned()
        if (data.signature !== body.signature || data.address !== body.address)
          throw new ApiError(409, 'signed', 'cid: has a signature already')
        return { body: { data } }
      },
    }),
    route({
      method: 'get',
      path: PATH,
      id: 'getSignature',
      summary: 'Get the signature of a CID',
      description: 'It stays when the file is deleted.',
      scope: 'org:files:read',
      params,
      success,
      errors: [404],
      async handle({ principal: { workspaceId }, params: { network, cid } }) {
        const data = await findSignature(
          prisma,
          { workspaceId, network, cidV1: canonicalCid(parseCid(cid)) },
          cid,
        )
        if (!data) throw unsigned()
        return { body: { data } }
      },
    }),
    route({
      method: 'delete',
      path: PATH,
      id: 'deleteSignature',
      summary: 'Remove the signature of a CID',
      scope: 'org:files:write',
      params,
      success: { description: 'Removed.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { network, cid } }) {
        const where = { workspaceId, network, cidV1: canonicalCid(parseCid(cid)) }
        const { count } = await prisma.cidSignature.deleteMany({ where })
        if (count === 0) throw unsigned()
        return { body: { data: null } }
      },
    }),
  ]
}
