import { z } from 'zod'
import { readUsage } from '../db/statements/files.ts'
import { like } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import type { FileServices } from './services.ts'

const route = routesOf('Usage')
/** The public service's own wording, which clients know. */
const GREETING = 'Congratulations! You are communicating with the Pinata API!'

/**
 * Routes that confirm that a key works, and report how much its workspace has stored. The npm SDK requests both below
 * `/v3` too.
 */
export function usageRoutes({ pool }: FileServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v3/data/testAuthentication',
      aliases: ['/data/testAuthentication'],
      id: 'testAuthentication',
      summary: 'Test an API key',
      scope: 'any',
      success: {
        description: 'The key is valid, regardless of its scopes.',
        body: z.object({ message: z.literal(GREETING) }),
      },
      async handle() {
        return { body: { message: GREETING } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/data/userPinnedDataTotal',
      aliases: ['/data/userPinnedDataTotal'],
      id: 'getPinnedTotal',
      summary: 'Count the files on both networks, and their bytes',
      scope: 'org:files:read',
      success: {
        description: 'The totals.',
        body: z.object({
          pin_count: like(128),
          pin_size_total: like(734_003_200).describe('Bytes of content.'),
          pin_size_with_replications_total: like(734_003_200).describe('Same value: Berth keeps one copy.'),
        }),
      },
      async handle({ principal }) {
        const { files, bytes } = await readUsage.one(pool, principal.workspaceId)
        return {
          body: { pin_count: files, pin_size_total: bytes, pin_size_with_replications_total: bytes },
        }
      },
    }),
    route({
      method: 'get',
      path: '/v3/usage',
      id: 'getUsage',
      summary: 'Get the stored amount and the plan’s limits',
      scope: 'org:files:read',
      success: {
        description: 'Both networks together.',
        body: z.object({
          data: z.object({
            plan: like('pro'),
            files: like(128),
            bytes: like(734_003_200),
            limit_bytes: like(1_099_511_627_776)
              .nullable()
              .describe('The plan’s total storage; null for no limit.'),
            max_file_bytes: z
              .number()
              .nullable()
              .describe('The plan’s limit for one file; null for no limit.'),
          }),
        }),
      },
      async handle({ principal: { workspaceId, plan } }) {
        const { name, storageBytes, maxFileBytes } = plan
        const usage = await readUsage.one(pool, workspaceId)
        return {
          body: { data: { plan: name, ...usage, limit_bytes: storageBytes, max_file_bytes: maxFileBytes } },
        }
      },
    }),
  ]
}
