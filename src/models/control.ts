/** Answers agent proxies about models; see `src/agent-proxy/model/protocol.ts`. */
import type { RequestHandler } from 'express'
import { z } from 'zod'
import {
  type GrantAnswer,
  MODEL_CONTROL,
  type SessionAnswer,
  type SyncAnswer,
} from '../agent-proxy/model/protocol.ts'
import type { Pool } from '../db/pool.ts'
import { proxyControl } from '../http/proxy-control.ts'
import type { Ledger } from './ledger.ts'
import { UNKNOWN_KEY } from './refusals.ts'
import { takeReports } from './reports.ts'
import type { Sessions } from './sessions.ts'

const MAX_KEYS = 20_000
const MAX_LEASES = 20_000
/** Leaves room for what a lease has beyond the need. */
const MAX_AMOUNT = Number.MAX_SAFE_INTEGER / 2

const key = z.string().regex(/^[0-9a-f]{64}$/)
const amount = z.number().int().min(0).max(MAX_AMOUNT)
const count = z.number().int().min(0).max(1e12)
const name = z.string().max(10_000)
const milliseconds = z.number().min(0).max(1e12)

const sessionRequest = z.object({ key })
const grantRequest = z.object({
  proxy: z.uuid(),
  key,
  need: z.object({ usd: amount, tokens: count, requests: z.number().int().min(0).max(1_000_000) }),
})
const record = z.object({
  provider: z.string().max(100),
  model: name,
  session: name,
  usd: amount,
  input: count,
  output: count,
  cachedInput: count,
  cacheWrite: count,
  reasoning: count,
  estimated: z.boolean(),
  status: z.number().int(),
  firstByteMs: milliseconds,
  totalMs: milliseconds,
})
const syncRequest = z.object({
  proxy: z.uuid(),
  leases: z
    .array(
      z.object({
        id: z.uuid().toLowerCase(),
        key,
        seq: z
          .number()
          .int()
          .min(1)
          .max(2 ** 31 - 1),
        open: z.object({ usd: amount, tokens: count }),
        records: z.array(record).max(10_000),
        done: z.boolean(),
      }),
    )
    .max(MAX_LEASES),
  keys: z.array(key).max(MAX_KEYS),
  known: z.record(key, z.string().max(100)).optional(),
})

interface Services {
  pool: Pool
  sessions: Sessions
  ledger: Ledger
  /** AGENT_PROXY_KEY. */
  key: string
}

/** Answers agent proxies, and passes all other requests on. */
export function modelControl({ pool, sessions, ledger, key }: Services): RequestHandler {
  const { router, post } = proxyControl(key)
  post(MODEL_CONTROL.session, sessionRequest, async ({ key }): Promise<SessionAnswer> => {
    const session = await sessions.find(key)
    return session ? { session } : { refusal: UNKNOWN_KEY }
  })
  post(MODEL_CONTROL.grant, grantRequest, (request): Promise<GrantAnswer> => ledger.grant(request))
  post(MODEL_CONTROL.sync, syncRequest, async ({ proxy, leases, keys, known }): Promise<SyncAnswer> => {
    const ended = await takeReports(pool, { proxy, leases })
    return { ...(await sessions.findAll(keys, known)), ended }
  })
  return router
}
