/** Applies the manifest of an agent to its rows, its engine's config and its tasks. */
import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import {
  checkManifest,
  MANIFEST_BYTES,
  type Manifest,
  type ManifestSecret,
  type ManifestSkill,
  type ManifestTask,
} from '../../../agentd/manifest-check.ts'
import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../../src/agents/agentd-client.ts'
import { installMissing } from '../../../src/agents/clawhub/index.ts'
import { isNotReady, whenReady } from '../../../src/agents/engine-call.ts'
import { setRoutes } from '../../../src/agents/ports/port-route-store.ts'
import { attachedSecrets } from '../../../src/agents/secrets/attachments.ts'
import { attachSkills } from '../../../src/agents/skills/index.ts'
import { newTask, Tasks } from '../../../src/agents/tasks/index.ts'
import { inTransaction, type Prisma } from '../../../src/db/prisma.ts'
import { describeIssue } from '../../../src/http/shapes.ts'
import type { Run } from '../../../src/operations/handler.ts'
import { LeaseLost } from '../../../src/operations/lease.ts'
import type { AgentWorkerServices } from '../../services.ts'
import { applySkills } from '../skills.ts'
import { applyChannels } from './channels.ts'
import { applyModel } from './model.ts'
import { type Applying, type PartResult, problemOf } from './part.ts'

export interface Applied {
  /** The parts that match the manifest, by their names in it. */
  applied: string[]
  /** Parts that could not be applied and why, with the path in the manifest. */
  problems: string[]
}

const NOTHING: Applied = { applied: [], problems: [] }
/** If the gateway is not ready after this time, the parts that need it are reported as problems. */
const STALL_MS = 60_000

/**
 * Applies a manifest, including the folders of its skills. An invalid manifest is a problem, and so is anything that
 * the agent lacks for it; the agent starts without.
 * @param text undefined if the agent has none.
 * @param mayInstall whether skills of the hub are installed into the library of its workspace.
 */
export async function applyManifestText(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  text: string | undefined,
  mayInstall: boolean,
): Promise<Applied> {
  await run.report('manifest')
  if (text === undefined) return NOTHING
  const checked = checkManifest(text)
  if ('errors' in checked) return { ...NOTHING, problems: checked.errors }
  const result = await applyManifest(services, run, agent, target, checked.manifest, mayInstall)
  const skills = checked.manifest.skills?.length ? await applySkills(services, run, agent, target) : []
  const problems = [...result.problems, ...skills.map(({ name, message }) => `skills: ${name}: ${message}`)]
  if (problems.length > 0)
    run.log.warn({ agentId: agent.agentId, problems }, 'parts of a manifest are not applied')
  return { ...result, problems }
}

/** Applies a new agent's first manifest, usually from a template. Its gateway has to be ready. */
export async function applyFirstManifest(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
): Promise<Applied> {
  const text = await readManifest(services, run, target)
  return applyManifestText(services, run, agent, target, text, true)
}

/** The text of an agent's manifest; undefined if there is none that can be read. */
async function readManifest(
  { agentd }: AgentWorkerServices,
  { signal }: Run,
  target: AgentdTarget,
): Promise<string | undefined> {
  const path = `/v1/file?${new URLSearchParams({ path: 'manifest.json', max: `${MANIFEST_BYTES}` })}`
  try {
    const { body } = await agentd.bytes(target, { path, maxBytes: MANIFEST_BYTES, signal })
    return body.toString('utf8')
  } catch (error) {
    // `build` may have changed the file in any way.
    if (error instanceof AgentdError && error.status >= 400 && error.status < 500) return undefined
    throw error
  }
}

type Part = keyof Manifest
/** Two parts are missing here: agentd reads `scripts` when it runs them, and `template` is for the template gallery. */
const PARTS: { [P in Part]?: (applying: Applying, value: NonNullable<Manifest[P]>) => Promise<PartResult> } =
  {
    engine: async ({ agent }, engine) =>
      engine === agent.engine ? {} : { problems: [`the agent has ${agent.engine}, which stays`] },
    agent: applyAgent,
    secrets: findMissing,
    skills: attachListed,
    routes: applyRoutes,
    // Applied by being known: `agents/mcp/tools.ts` reads what was applied.
    mcp: async () => ({}),
    channels: applyChannels,
    tasks: applyTasks,
    // The model comes last, because the gateway may restart for it.
    model: applyModel,
  }

/**
 * Applies the parts of a manifest that differ from the manifest applied last. The owner's changes elsewhere since then
 * stay, unless the manifest changes the same part. A problem in one part does not stop the others, and that part is
 * tried again with the next manifest. Things that a manifest no longer names stay.
 *
 * May run twice, and be interrupted anywhere. The caller handles the folders of skills.
 * @param mayInstall see {@link Applying}.
 * @throws LeaseLost, AgentdError `stale_epoch`
 */
async function applyManifest(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  manifest: Manifest,
  mayInstall: boolean,
): Promise<Applied> {
  const applying = { services, run, agent, target, mayInstall }
  const known: Partial<Manifest> = (await readApplied(applying)) ?? {}
  const result: Applied = { applied: [], problems: [] }
  const done: Partial<Record<Part, unknown>> = {}
  for (const part of Object.keys(PARTS) as Part[]) {
    const value = manifest[part]
    if (value === undefined) continue
    if (isDeepStrictEqual(value, known[part])) {
      done[part] = value
      continue
    }
    await run.report('manifest', { part })
    const { problems = [] } = await applyPart(applying, part, value)
    result.problems.push(...problems.map((problem) => join(part, problem)))
    if (problems.length > 0) continue
    result.applied.push(part)
    done[part] = value
  }
  await changeAgent(services, agent, { manifest: JSON.stringify(done) })
  return result
}

async function applyPart<P extends Part>(
  applying: Applying,
  part: P,
  value: NonNullable<Manifest[P]>,
): Promise<PartResult> {
  const apply = PARTS[part] as (applying: Applying, value: NonNullable<Manifest[P]>) => Promise<PartResult>
  const { services, target } = applying
  const { signal } = applying.run
  try {
    return await whenReady(services.agentd, target, { ms: STALL_MS, signal }, () => apply(applying, value))
  } catch (error) {
    signal.throwIfAborted()
    return { problems: [problemOf(error)] }
  }
}

/** Joins `tasks` and `[0]: why` into `tasks[0]: why`, `model` and `why` into `model: why`. */
const join = (part: string, problem: string): string =>
  /^[[.]/.test(problem) ? `${part}${problem}` : `${part}: ${problem}`

async function applyAgent(
  { services, agent }: Applying,
  { name, description, vibe, emoji, protocols }: Manifest['agent'],
): Promise<PartResult> {
  const givenOr = (given: string | null | undefined, known: string | null) =>
    given === undefined ? known : given
  await changeAgent(services, agent, {
    name: name.trim(),
    description: givenOr(description, agent.description),
    vibe: givenOr(vibe, agent.vibe),
    emoji: givenOr(emoji, agent.emoji),
    ...(protocols && { protocols }),
    updatedAt: new Date(),
  })
  return {}
}

/** A manifest cannot attach secrets: otherwise anyone who may push could read any secret of the workspace. */
async function findMissing({ services, agent }: Applying, wanted: ManifestSecret[]): Promise<PartResult> {
  const attached = (await attachedSecrets(services.prisma, agent)).map(({ name }) => name)
  const missing = wanted.filter(({ name, required }) => required !== false && !attached.includes(name))
  return { problems: missing.map(({ name }) => `${name} is not attached to the agent`) }
}

/** The skills' folders are created afterwards, see {@link applyManifestText}. */
async function attachListed(
  { services, run, agent, mayInstall }: Applying,
  wanted: ManifestSkill[],
): Promise<PartResult> {
  const problems: string[] = []
  for (const [index, { cid, clawhub_slug: slug }] of wanted.entries()) {
    const asked = [cid ?? slug ?? '']
    try {
      if (mayInstall) await installMissing(services, agent, asked, run.signal)
      await inTransaction(services.prisma, (tx) => attachSkills(tx, agent, asked))
    } catch (error) {
      problems.push(`[${index}]: ${problemOf(error)}`)
    }
  }
  return { problems }
}

async function applyRoutes(
  { services, agent }: Applying,
  routes: NonNullable<Manifest['routes']>,
): Promise<PartResult> {
  const mappings = routes.map(({ port, path, protected: isProtected }) => ({
    port,
    pathPrefix: path,
    protected: isProtected ?? true,
  }))
  await setRoutes(services.prisma, agent, mappings)
  return {}
}

async function readApplied({ services, agent }: Applying): Promise<Manifest | null> {
  const row = await services.prisma.agent.findUnique({ where: { id: agent.id }, select: { manifest: true } })
  return row?.manifest ? JSON.parse(row.manifest) : null
}

/** @throws LeaseLost */
async function changeAgent(
  { prisma }: AgentWorkerServices,
  { id, agentId, epoch }: Agent,
  data: Prisma.AgentUpdateManyMutationInput,
): Promise<void> {
  const { count } = await prisma.agent.updateMany({ where: { id, epoch, deletedAt: null }, data })
  if (count === 0) throw new LeaseLost(`agent ${agentId}, epoch ${epoch}`)
}

/** Creates or updates the agent's tasks named in a manifest; other tasks stay. Needs the gateway, which stores them. */
async function applyTasks(
  { services, agent, target }: Pick<Applying, 'services' | 'agent' | 'target'>,
  wanted: ManifestTask[],
): Promise<PartResult> {
  const tasks = new Tasks(services.agentd)
  const reached = { ...agent, ...target }
  // Lists first, so that an unavailable gateway causes one problem instead of twenty.
  const existing = await tasks.list(reached, true)
  const problems: string[] = []
  for (const [index, entry] of wanted.entries()) {
    const parsed = newTask.safeParse(toTask(entry))
    if (!parsed.success) {
      problems.push(`[${index}].${describeIssue(parsed.error)}`)
      continue
    }
    const task = parsed.data
    const known = existing.find(({ name }) => name === task.name)
    try {
      if (!known) await tasks.create(reached, task)
      else if (!isIn(task, known)) await tasks.update(reached, known.id, task)
    } catch (error) {
      // The next attempt applies all of them again, and finds the existing ones.
      if (isNotReady(error)) throw error
      problems.push(`[${index}]: ${problemOf(error)}`)
    }
  }
  return { problems }
}

/** A task in the format of `POST A/tasks`. */
function toTask(entry: ManifestTask): z.input<typeof newTask> | Record<string, unknown> {
  const { name, description, enabled, delivery, wakeMode } = entry
  const payload = entry.payload ?? { kind: 'agentTurn', message: entry.prompt }
  return {
    name,
    description: description ?? undefined,
    enabled,
    schedule: typeof entry.schedule === 'string' ? { kind: 'cron', expr: entry.schedule } : entry.schedule,
    payload,
    delivery,
    sessionTarget: entry.sessionTarget ?? (payload.kind === 'agentTurn' ? 'isolated' : 'main'),
    wakeMode,
  }
}

/** True if a job contains everything in the task; the engine adds fields. */
function isIn(part: unknown, whole: unknown): boolean {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return isDeepStrictEqual(part, whole)
  if (typeof whole !== 'object' || whole === null) return false
  return Object.entries(part).every(
    ([key, value]) => value === undefined || isIn(value, (whole as Record<string, unknown>)[key]),
  )
}
