/**
 * Prepares the workspace of a starting agent: seeds it, or restores it from its newest snapshot if its volume was lost.
 */
import { CID } from 'multiformats/cid'
import { checkManifest, MANIFEST_BYTES, parseManifest } from '../../agentd/manifest-check.ts'
import type { SeedRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import {
  commitLater,
  latestSnapshot,
  readRepository,
  restoreExtras,
  type StoredSnapshot,
} from '../../src/agents/snapshots/index.ts'
import { templateOf } from '../../src/agents/templates/template-store.ts'
import { ignoring } from '../../src/errors.ts'
import { seedFiles } from '../../src/openclaw/seed.ts'
import type { Run } from '../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../services.ts'
import { failureOf, StartFailed } from './failure.ts'
import type { AgentdEndpoint } from './sandbox.ts'
import { applySkills } from './skills.ts'
import { importTree } from './snapshots/import-tree.ts'

const WRITE_MS = 60_000
const IDENTITY_BYTES = 262_144

/**
 * Makes sure that the agent has its workspace, and the folders of its skills.
 * @param isFork whether it is a fork that has not started yet: its history is a snapshot of another agent.
 * @returns `restored` if its volume was empty and it has a history; `begun` if nothing is committed yet. `lost` lists
 *   what a restore could not bring back, for people.
 * @throws StartFailed if its snapshot is lost: an empty workspace would look like the agent's own.
 */
export async function prepareWorkspace(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
  isFork: boolean,
): Promise<{ workspace: 'restored' | 'begun' | 'there'; lost: string[] }> {
  await run.report('workspace')
  const { agentd, prisma } = services
  const snapshot = await latestSnapshot(prisma, agent)
  // A new agent has nothing to keep, whatever an interrupted attempt has left. `restore` first sets the time of the last
  // sync to null, so a history without one belongs to a fork, or a restore was cut short.
  const isEmpty = snapshot ? agent.lastSync === null : !wasUp(agent)
  const head = isEmpty ? null : (await readRepository({ agentd, target }, run.signal)).head
  const isLost = snapshot !== undefined && head === null
  // Later on, the agent may have removed some of these files for good.
  const isNew = !snapshot && head === null
  const lost = isLost ? await restore(services, run, agent, target, { snapshot, isFork }) : []
  if (isNew) {
    await writeTemplate(services, run, agent, target)
    await writeFiles(services, run, agent, target, seedFiles(agent))
  }
  const problems = await applySkills(services, run, agent, target)
  if (problems.length > 0)
    run.log.warn({ agentId: agent.agentId, problems }, 'an agent comes up without skills')
  return { workspace: isLost ? 'restored' : isNew ? 'begun' : 'there', lost }
}

/** Gives a spare what every new agent begins with: a repository without a commit, and Berth's own skill. */
export async function prepareSpare(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
): Promise<void> {
  await run.report('workspace')
  await writeFiles(services, run, agent, target, [])
  await applySkills(services, run, agent, target)
}

/** True for an agent that has run before: a worker has recorded the state of its scripts. */
const wasUp = ({ scripts }: Agent): boolean => Object.keys(scripts).length > 0

/**
 * Restores the workspace from a snapshot. If it is killed anywhere, it runs again: the row stays marked until the end.
 */
async function restore(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
  { snapshot, isFork }: { snapshot: StoredSnapshot; isFork: boolean },
): Promise<string[]> {
  const { network, cid, executables, commitObject: object, extras } = snapshot
  const { agentId, id, epoch } = agent
  const write = (data: { syncedAt: Date | null; scripts?: Record<string, never> }) =>
    services.prisma.agent.updateMany({ where: { id, epoch }, data })
  if (!isFork) run.log.warn({ agentId, cid }, "an agent's volume was empty; restoring its newest snapshot")
  await run.report('workspace', { snapshotCid: cid })
  // The volume also contained the results of its scripts, so `build` is due until they have run again.
  await write({ syncedAt: null, scripts: {} })
  // Creates the root, with a repository in it.
  await writeFiles(services, run, agent, target, [])
  const source = { network, cid: CID.parse(cid), executables, message: `sync: ${cid}`, object }
  await importTree(services, run, agent, target, source).catch((error) => {
    const failure = failureOf(error)
    if (failure?.code !== 'content_lost') throw error
    const reason = `its newest snapshot ${cid} cannot be restored: ${failure.message}`
    throw new StartFailed('content_lost', reason, { cause: error })
  })
  const access = { agentd: services.agentd, target, epoch, signal: run.signal }
  const lost = extras ? await restoreExtras(access, extras) : [UNKNOWN_EXTRAS]
  if (isFork) await adoptFiles(services, run, agent, target)
  else run.log.warn({ agentId, cid, lost }, "an agent's newest snapshot is restored")
  await write({ syncedAt: new Date() })
  return lost
}

const UNKNOWN_EXTRAS =
  'Empty folders, permissions and other branches: the snapshot does not say which there were'

/**
 * Copies the files of its template into a new agent's root; existing files stay. The history starts fresh, and the
 * manifest becomes the new agent's own. Does nothing if Berth no longer has the template.
 */
async function writeTemplate(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
): Promise<void> {
  if (agent.templateId === null) return
  const { agentd, pool } = services
  const { signal } = run
  const template = await templateOf(pool, agent.templateId)
  if (!template) return run.log.warn({ templateId: agent.templateId }, 'the template of an agent is gone')
  if (!template.stored) {
    const adopted = template.files.map(({ path, text }) => ({ path, text: adoptFile(path, text, agent) }))
    await writeFiles(services, run, agent, target, adopted)
    return
  }
  // Creates the repository, so that it can be read.
  await writeFiles(services, run, agent, target, [])
  const { head } = await readRepository({ agentd, target }, signal)
  const { network, executables } = template.stored
  const message = `feat: begin from ${template.slug}`
  if (head === null)
    await importTree(services, run, agent, target, {
      network,
      cid: CID.parse(template.snapshotCid),
      executables,
      message,
    })
  await adoptFiles(services, run, agent, target)
}

/** Files that contain the agent's identity, and the maximum bytes of each. */
const ADOPTED = { 'manifest.json': MANIFEST_BYTES, 'workspace/IDENTITY.md': IDENTITY_BYTES }

/** Makes the files that contain another agent's identity the agent's own. */
async function adoptFiles(
  services: AgentWorkerServices,
  { signal }: Run,
  agent: Agent,
  target: AgentdEndpoint,
): Promise<void> {
  const changes = Object.entries(ADOPTED).map(([path, maxBytes]) => {
    const change = (text: string) => adoptFile(path, text, agent)
    return changeFile(services, target, { path, maxBytes, signal, change })
  })
  await Promise.all(changes)
}

function adoptFile(path: string, text: string, agent: Agent): string {
  if (path === 'workspace/IDENTITY.md') return adoptIdentity(text, agent)
  // The agent may have changed the file since the first attempt.
  if (path !== 'manifest.json' || 'errors' in checkManifest(text)) return text
  return adoptManifest(text, agent)
}

/** Changes a text file of the agent, if it exists. */
async function changeFile(
  { agentd }: AgentWorkerServices,
  target: AgentdEndpoint,
  options: { path: string; maxBytes: number; signal: AbortSignal; change: (text: string) => string },
): Promise<void> {
  const { path, maxBytes, signal } = options
  const url = `/v1/file?${new URLSearchParams({ path, max: `${maxBytes}` })}`
  const found = await agentd.bytes(target, { path: url, maxBytes, signal }).catch(ignoring(...UNFIT))
  const text = found?.body.toString('utf8')
  const changed = text === undefined ? undefined : options.change(text)
  if (changed === undefined || changed === text) return
  await agentd.json(target, { method: 'PUT', path: url, body: Buffer.from(changed), signal })
}

/** The agent does not have the file, or has made it into something else. */
const UNFIT = ['not_found', 'not_a_file', 'outside', 'too_large', 'bad_request']

type AgentIdentity = Pick<Agent, 'name' | 'description' | 'vibe' | 'emoji'>

/** The template's manifest with the agent's own name and description, and without its description of the template. */
export function adoptManifest(text: string, { name, description, vibe, emoji }: AgentIdentity): string {
  const { template: _, ...manifest } = parseManifest(text)
  const given = Object.entries({ name, description, vibe, emoji }).filter(([, value]) => value !== null)
  return `${JSON.stringify({ ...manifest, agent: Object.fromEntries(given) }, null, 2)}\n`
}

/**
 * `workspace/IDENTITY.md` of the template's original agent, with the new agent's name, emoji and vibe in the lines that
 * Berth once wrote; all other text stays.
 */
export function adoptIdentity(text: string, { name, vibe, emoji }: AgentIdentity): string {
  const values: Record<string, string | null> = { Name: name, Emoji: emoji, Vibe: vibe }
  return text.replace(/^- \*\*(Name|Emoji|Vibe):\*\*.*$/gm, (_, field: string) => {
    const value = (values[field] ?? '').replace(/\s+/g, ' ').trim()
    return `- **${field}:** ${value}`
  })
}

/** Writes files into the root, which gets a repository; existing files stay. */
async function writeFiles(
  { agentd }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
  files: SeedRequest['files'],
): Promise<void> {
  await agentd.json(target, {
    method: 'PUT',
    path: '/v1/workspace',
    json: { files },
    epoch: agent.epoch,
    timeoutMs: WRITE_MS,
    signal: run.signal,
  })
}

/**
 * Has agentd make the first commit, so that there is something to clone. Runs only after the gateway: before that,
 * agentd does not know the secrets that must stay out of commits.
 */
export async function commitFirst(
  { agentd }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
): Promise<void> {
  const access = { agentd, target, epoch: agent.epoch, signal: run.signal }
  try {
    await commitLater(access, 'feat: begin workspace')
  } catch (error) {
    // The next sync makes the commit.
    if (!(error instanceof AgentdError) || error.code === 'stale_epoch') throw error
    run.log.warn({ err: error, agentId: agent.agentId }, 'cannot make the first commit of an agent')
  }
}
