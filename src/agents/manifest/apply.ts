/** A manifest's words become the agent's rows, its engine's config and its tasks. */
import { isDeepStrictEqual } from 'node:util'
import type { Manifest, ManifestSecret, ManifestSkill } from '../../../agentd/manifest-check.ts'
import { transaction } from '../../db/pool.ts'
import { LeaseLost } from '../../operations/lease.ts'
import type { Run } from '../../operations/runner.ts'
import type { Agent } from '../agent.ts'
import type { AgentdTarget } from '../agentd-client.ts'
import { installMissing } from '../clawhub/install.ts'
import { setRoutes } from '../ports/store.ts'
import { attachedSecrets } from '../secrets/attachments.ts'
import { attachSkills } from '../skills/attach.ts'
import { applyChannels } from './channels.ts'
import { applyModel } from './model.ts'
import type { Applying, PartResult } from './part.ts'
import { problemOf } from './problem.ts'
import { applyTasks } from './tasks.ts'

export interface Applied {
  /** The parts that are as the manifest says, by their names in it. */
  applied: string[]
  /** What could not be done and why, with the path in the manifest. */
  problems: string[]
}

type Part = keyof Manifest
/** `scripts` is read by agentd where it runs them, `template` is for others than the agent. */
const PARTS: { [P in Part]?: (applying: Applying, value: NonNullable<Manifest[P]>) => Promise<PartResult> } =
  {
    engine: async ({ agent }, engine) =>
      engine === agent.engine ? {} : { problems: [`the agent has ${agent.engine}, which stays`] },
    agent: applyAgent,
    secrets: findMissing,
    skills: applySkills,
    routes: applyRoutes,
    channels: applyChannels,
    tasks: applyTasks,
    // Last: the gateway may start again for it.
    model: applyModel,
  }

/**
 * Applies what a manifest says otherwise than the one that was applied last: what the owner has changed elsewhere since
 * stays, unless the manifest changes it as well. A problem in one part does not stop the others, and that part is
 * tried again with the next manifest. What was there and a manifest no longer names stays.
 *
 * May run twice, and be interrupted anywhere. The folders of skills are left to `applySkills` of the workers.
 * @throws LeaseLost, AgentdError `stale_epoch`
 */
export async function applyManifest(
  services: Applying['services'],
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  manifest: Manifest,
): Promise<Applied> {
  const applying = { services, run, agent, target }
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
  await writeApplied(applying, done)
  return result
}

async function applyPart<P extends Part>(
  applying: Applying,
  part: P,
  value: NonNullable<Manifest[P]>,
): Promise<PartResult> {
  const apply = PARTS[part] as (applying: Applying, value: NonNullable<Manifest[P]>) => Promise<PartResult>
  try {
    return await apply(applying, value)
  } catch (error) {
    applying.run.signal.throwIfAborted()
    return { problems: [problemOf(error)] }
  }
}

/** `tasks` and `[0]: why` are `tasks[0]: why`; `model` and `why` are `model: why`. */
const join = (part: string, problem: string): string =>
  /^[[.]/.test(problem) ? `${part}${problem}` : `${part}: ${problem}`

async function applyAgent(
  { services, agent }: Applying,
  { name, description, vibe, emoji }: Manifest['agent'],
): Promise<PartResult> {
  const or = (given: string | null | undefined, known: string | null) => (given === undefined ? known : given)
  const { rowCount } = await services.pool.query(
    `UPDATE agent SET name = $3, description = $4, vibe = $5, emoji = $6, updated_at = clock_timestamp()
     WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL`,
    [
      agent.id,
      agent.epoch,
      name.trim(),
      or(description, agent.description),
      or(vibe, agent.vibe),
      or(emoji, agent.emoji),
    ],
  )
  if (!rowCount) throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
  return {}
}

/** Nothing of the vault is attached by a manifest: whoever may push could read it then. */
async function findMissing({ services, agent }: Applying, wanted: ManifestSecret[]): Promise<PartResult> {
  const attached = (await attachedSecrets(services.pool, agent)).map(({ name }) => name)
  const missing = wanted.filter(({ name, required }) => required !== false && !attached.includes(name))
  return { problems: missing.map(({ name }) => `${name} is not attached to the agent`) }
}

async function applySkills({ services, run, agent }: Applying, wanted: ManifestSkill[]): Promise<PartResult> {
  const problems: string[] = []
  for (const [index, { cid, clawhub_slug: slug }] of wanted.entries()) {
    const asked = [cid ?? slug ?? '']
    try {
      await installMissing(services, agent, asked, run.signal)
      await transaction(services.pool, (client) => attachSkills(client, agent, asked))
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
  await setRoutes(services.pool, agent, mappings)
  return {}
}

async function readApplied({ services, agent }: Applying): Promise<Manifest | null> {
  const { rows } = await services.pool.query('SELECT manifest FROM agent WHERE id = $1', [agent.id])
  const [row] = rows
  return row?.manifest ? JSON.parse(row.manifest) : null
}

/** @throws LeaseLost */
async function writeApplied({ services, agent }: Applying, manifest: object): Promise<void> {
  const { rowCount } = await services.pool.query(
    'UPDATE agent SET manifest = $3 WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL',
    [agent.id, agent.epoch, JSON.stringify(manifest)],
  )
  if (!rowCount) throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
}
