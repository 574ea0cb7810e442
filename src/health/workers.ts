/** Components that only workers see, as reported in their rows. */

import { type Finding, look, type Part } from '../lib/readiness.ts'
import type { WorkerStatus } from '../operations/worker-status.ts'
import { checkNode } from './checks.ts'

/** Components of a worker that describe its own machine. */
const OWN = ['disk', 'host', 'schema', 'agent_disks']

const NO_WORKER = {
  detail: 'no worker process is running',
  advice: 'Run `npm start`, or `node src/main.ts worker`.',
}

/** A worker's row has no advice: its log does, with the cause. */
const SEE_LOG = 'See the log of the worker.'

/**
 * `workers`, both IPFS networks, and `docker`, `kubernetes` or `processes` if a worker serves agents, with `pool` if it
 * keeps spares. Never rejects.
 */
export async function observeWorkers(workers: WorkerStatus): Promise<Record<string, Finding>> {
  const found: Record<string, Finding> = {}
  const all = await look(async () => {
    const { count, ipfs, ipfsPrivate, parts } = await workers.read()
    found.ipfs = checkNode(ipfs)
    found.ipfs_private = checkNode(ipfsPrivate)
    for (const name of ['docker', 'kubernetes', 'processes', 'pool']) {
      const finding = summarize(parts.flatMap((own) => own[name] ?? []))
      if (finding) found[name] = finding
    }
    if (count === 0) return { status: 'down', ...NO_WORKER }
    return summarizeOwn(parts) ?? { status: 'ok', detail: `${count} running` }
  })
  if (found.ipfs) return { workers: all, ...found }
  const unknown: Finding = { ...all, detail: 'unknown' }
  return { workers: unknown, ipfs: unknown, ipfs_private: unknown }
}

/** Down if it is down for all of them; undefined if no worker has the component. */
function summarize(seen: Part[]): Finding | undefined {
  const bad = seen.filter(({ status }) => status !== 'ok')
  const [first] = bad
  if (!first) return seen[0]
  if (bad.length === seen.length) return { ...first, advice: SEE_LOG }
  const detail = `${bad.length} of ${seen.length} workers: ${first.detail}`
  return { status: 'degraded', detail, advice: SEE_LOG }
}

function summarizeOwn(workers: Record<string, Part>[]): Finding | undefined {
  for (const name of OWN) {
    const part = workers.map((own) => own[name]).find((own) => own && own.status !== 'ok')
    if (!part) continue
    return { status: 'degraded', detail: `a worker reports ${name}: ${part.detail}`, advice: SEE_LOG }
  }
  return undefined
}
