/** The files of an agent that is made from a template. */
import { CID } from 'multiformats/cid'
import { checkManifest, MANIFEST_BYTES } from '../../agentd/manifest-check.ts'
import type { RepositoryStatus, SeedRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { adoptIdentity, adoptManifest } from '../../src/agents/templates/adopt.ts'
import { bundledTemplates } from '../../src/agents/templates/bundled.ts'
import { templateOf } from '../../src/agents/templates/store.ts'
import type { Run } from '../../src/operations/runner.ts'
import { importTree } from './import-tree.ts'
import type { Reached } from './reach.ts'
import type { AgentWorkerServices } from './services.ts'

const WRITE_MS = 60_000
const IDENTITY_BYTES = 262_144

/**
 * Puts the files of its template into a new agent's root; what is there already stays. The history begins anew, and the
 * manifest is the new agent's own. Nothing happens where Berth no longer has the template.
 */
export async function writeTemplate(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: Reached,
): Promise<void> {
  if (agent.templateId === null) return
  const { agentd, pool } = services
  const { signal } = run
  const seed = (files: SeedRequest['files']) =>
    agentd.json(target, {
      method: 'PUT',
      path: '/v1/workspace',
      json: { files },
      epoch: agent.epoch,
      timeoutMs: WRITE_MS,
      signal,
    })
  const template = await templateOf(pool, agent.templateId)
  if (!template) return run.log.warn({ templateId: agent.templateId }, 'the template of an agent is gone')
  if (!template.stored) {
    const files = (await bundledTemplates()).find(({ id }) => id === template.id)?.files ?? []
    await seed(files.map(({ path, text }) => ({ path, text: adoptFile(path, text, agent) })))
    return
  }
  // The repository is made, so that there is one to ask.
  await seed([])
  const { head } = await agentd.json<RepositoryStatus>(target, { path: '/v1/repository', signal })
  const { network, executables } = template.stored
  const message = `feat: begin from ${template.slug}`
  if (head === null)
    await importTree(services, run, agent, target, {
      network,
      cid: CID.parse(template.snapshotCid),
      executables,
      message,
    })
  for (const [path, maxBytes] of Object.entries(ADOPTED))
    await changeFile(services, target, {
      path,
      maxBytes,
      signal,
      change: (text) => adoptFile(path, text, agent),
    })
}

/** Files that say whose they are, and the most bytes of each. */
const ADOPTED = { 'manifest.json': MANIFEST_BYTES, 'workspace/IDENTITY.md': IDENTITY_BYTES }

function adoptFile(path: string, text: string, agent: Agent): string {
  if (path === 'workspace/IDENTITY.md') return adoptIdentity(text, agent)
  // The agent may have changed it since this was done the first time.
  if (path !== 'manifest.json' || 'errors' in checkManifest(text)) return text
  return adoptManifest(text, agent)
}

/** Changes a text of the agent, where it has one. */
async function changeFile(
  { agentd }: AgentWorkerServices,
  target: Reached,
  options: { path: string; maxBytes: number; signal: AbortSignal; change: (text: string) => string },
): Promise<void> {
  const { path, maxBytes, signal } = options
  const url = `/v1/file?${new URLSearchParams({ path, max: `${maxBytes}` })}`
  const found = await agentd.bytes(target, { path: url, maxBytes, signal }).catch((error) => {
    if (error instanceof AgentdError && UNFIT.includes(error.code)) return undefined
    throw error
  })
  const text = found?.body.toString('utf8')
  const changed = text === undefined ? undefined : options.change(text)
  if (changed === undefined || changed === text) return
  await agentd.json(target, { method: 'PUT', path: url, body: Buffer.from(changed), signal })
}

/** The agent has no such file, or has made it into something else. */
const UNFIT = ['not_found', 'not_a_file', 'outside', 'too_large', 'bad_request']
