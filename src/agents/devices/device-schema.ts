import { z } from 'zod'
import { text } from '../../http/shapes.ts'

export const requestPath = z.object({ agentId: z.string(), requestId: text(200) })

const named = {
  deviceId: z.string(),
  publicKey: z.string().optional(),
  displayName: z.string().optional(),
  platform: z.string().optional(),
  clientId: z.string().optional(),
  clientMode: z.string().optional(),
  role: z.string().optional(),
  roles: z.array(z.string()).optional(),
  scopes: z.array(z.string()).optional(),
  remoteIp: z.string().optional(),
}

/** The engine's records; what it says more is passed on. */
export const devices = z.object({
  pending: z.array(z.looseObject({ requestId: z.string(), ...named, ts: z.number().optional() })),
  paired: z.array(z.looseObject(named)),
})

export const approval = z.object({ success: z.boolean(), requestId: z.string(), message: z.string() })

export const approvals = z.object({
  approved: z.array(z.string()),
  failed: z.array(z.object({ requestId: z.string(), success: z.boolean(), error: z.string() })),
  message: z.string(),
})
