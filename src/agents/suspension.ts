/** Suspends an agent's engine while its home is copied, with OpenClaw's own `gateway.suspend.*`. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type AgentdClient, AgentdError, type AgentdTarget } from './agentd-client.ts'
import { whenReady } from './engine-call.ts'

/** How long a busy engine may take to finish its current work. */
const WAIT_MS = 20_000
const POLL_MS = 1000
const CALL_MS = 10_000

const answer = z.object({
  ok: z.literal(true),
  payload: z.object({
    status: z.string(),
    suspensionId: z.string().optional(),
    /** True if the engine stayed suspended until it was asked to resume. */
    resumed: z.boolean().optional(),
  }),
})

export interface Suspension {
  /** Resumes the engine. @returns whether it stayed suspended until now. Never rejects. */
  resume(): Promise<boolean>
}

/**
 * Suspends an agent's engine: it accepts no new work, and its data does not change. It resumes by itself after two
 * minutes, even if this process is killed. The suspension is never extended, because agentd ends a gateway that is not
 * ready for longer.
 * @returns undefined if it is still working after 20 seconds, does not run, or does not respond.
 * @throws the signal's reason.
 */
export async function suspendEngine(
  agentd: AgentdClient,
  target: AgentdTarget,
  signal: AbortSignal,
): Promise<Suspension | undefined> {
  const call = async (method: string, params: Record<string, unknown>, until?: AbortSignal) => {
    const json = { method: `gateway.suspend.${method}`, params, timeoutMs: CALL_MS }
    const request = { method: 'POST', path: '/v1/rpc', json, timeoutMs: CALL_MS * 2, signal: until } as const
    return answer.safeParse(await agentd.json<unknown>(target, request)).data?.payload
  }
  const requestId = randomUUID()
  const deadline = performance.now() + WAIT_MS
  try {
    for (;;) {
      const patience = { ms: deadline - performance.now(), signal }
      const prepared = await whenReady(agentd, target, patience, () => call('prepare', { requestId }, signal))
      if (prepared?.status === 'ready') {
        const { suspensionId } = prepared
        const resume = async () =>
          (await call('resume', { suspensionId }).catch(() => undefined))?.resumed === true
        return { resume }
      }
      if (performance.now() > deadline) return undefined
      await delay(POLL_MS, undefined, { signal })
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof AgentdError) return undefined
    throw error
  }
}
