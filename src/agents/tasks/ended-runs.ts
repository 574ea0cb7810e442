/** The runs of an agent's tasks as its agentd tells them. Its answer is untrusted: it is checked, and bounded. */
import { z } from 'zod'
import type { TaskRunPage } from '../../../agentd/protocol.ts'
import { type AgentdClient, AgentdError, type AgentdTarget } from '../agentd-client.ts'
import { storable } from '../agentd-status.ts'

const MAX_RUNS = 100
const MAX_BYTES = 1_048_576

const id = storable(200).pipe(z.string().min(1))
const run = z.object({
  runId: id,
  taskId: id,
  name: storable(200).nullable(),
  status: z.enum(['ok', 'error', 'skipped']),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  durationMs: z.number().int().min(0).nullable(),
  error: storable(500).nullable(),
})
const page = z.object({ runs: z.array(run).max(MAX_RUNS), next: z.number().int().min(0).nullable() })

/** Reads a page of the runs that have ended, the newest first. @throws AgentdError, also for an answer that is no such page. */
export async function readEndedRuns(
  agentd: AgentdClient,
  target: AgentdTarget,
  { offset, signal }: { offset: number; signal: AbortSignal },
): Promise<TaskRunPage> {
  const path = `/v1/task-runs?offset=${offset}`
  const answer = await agentd.json(target, { path, maxBytes: MAX_BYTES, signal })
  const parsed = page.safeParse(answer)
  if (parsed.success) return parsed.data
  throw new AgentdError('bad_answer', 'agentd answered no runs', 0, { cause: parsed.error })
}
