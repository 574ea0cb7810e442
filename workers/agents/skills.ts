/** Updates an agent's skill folders to match its attached skills. */
import type { SkillFiles } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import { bundledSkills } from '../../src/agents/clawhub/index.ts'
import {
  BadSkill,
  type Resolution,
  readSkill,
  readSkillFolders,
  type SkillFile,
} from '../../src/agents/skills/index.ts'
import type { SkillProblem } from '../../src/db/statements/agents.ts'
import { readWantedSkills } from '../../src/db/statements/worker-agents.ts'
import { withDeadline } from '../../src/lib/signals.ts'
import type { Run } from '../../src/operations/handler.ts'
import { StorageError } from '../../src/storage/port.ts'
import type { AgentWorkerServices } from '../services.ts'

/** The skill that every agent has by default. */
const PLATFORM_SKILL = '@berth/platform'
const WRITE_MS = 60_000
/** Time limit for all skills together: agentd decides how many folders there are, and may be slow. */
const APPLY_MS = 300_000
/** agentd's codes for a folder that it cannot write because of the agent's own files. */
const IN_THE_WAY = ['conflict', 'outside', 'not_a_file']

/** Resolutions by skill name, for folders that the agent has changed or created itself. */
type Resolutions = Record<string, Resolution>

interface WantedSkill {
  name: string
  cid: string
  files(): Promise<SkillFile[] | undefined>
}

/**
 * Updates the skill folders to match the attached skills and the platform's own. Folders that the agent has changed
 * stay unchanged, unless their version changes. Then that is a problem, and so is unavailable content: an agent starts
 * without it. May run twice, and be interrupted anywhere.
 * @returns the problems, which are also stored in the agent's row.
 * @throws AgentdError if agentd fails.
 */
export async function applySkills(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  resolved: Resolutions = {},
): Promise<SkillProblem[]> {
  const late = () => new AgentdError('timeout', 'the skills were not in place in time')
  return withDeadline({ ms: APPLY_MS, signal: run.signal, late }, async (signal) => {
    const problems = await apply(services, { ...run, signal }, agent, target, resolved)
    const { id, epoch } = agent
    const data = { skillProblems: problems.map((problem) => ({ ...problem })) }
    await services.prisma.agent.updateMany({ where: { id, epoch }, data })
    return problems
  })
}

async function apply(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  resolved: Resolutions,
): Promise<SkillProblem[]> {
  const { agentd } = services
  await run.report('skills')
  const [wanted, existing] = await Promise.all([
    wantedSkills(services, agent, run.signal),
    readSkillFolders(agentd, target, run.signal),
  ])
  const problems: SkillProblem[] = []
  for (const skill of wanted) {
    const folder = existing.find(({ name }) => name === skill.name)
    const isThere = folder?.cid === skill.cid && folder.state !== 'missing'
    // A skill may be named `constructor`.
    const resolution = Object.hasOwn(resolved, skill.name) ? resolved[skill.name] : undefined
    if (isThere && (folder.state === 'same' || !resolution)) continue
    const problem = await writeSkill(services, run, agent, target, skill, resolution)
    if (problem) problems.push(problem)
  }
  for (const { name, cid } of existing) {
    if (cid === null || wanted.some((skill) => skill.name === name)) continue
    const request = { method: 'DELETE', path: skillPath(name), epoch: agent.epoch, signal: run.signal }
    await agentd.json(target, request).catch((error) => {
      if (!(error instanceof AgentdError) || ![...IN_THE_WAY, 'bad_request'].includes(error.code)) throw error
      problems.push({ name, code: 'content', message: error.message })
    })
  }
  await run.report('skills', { problems })
  return problems
}

async function writeSkill(
  { agentd }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  { name, cid, files: read }: WantedSkill,
  resolution: SkillFiles['resolution'],
): Promise<SkillProblem | undefined> {
  const problem = (code: SkillProblem['code'], message: string) => ({ name, code, message })
  try {
    const files = await read()
    if (!files) return problem('content', `not all of ${cid} is on our IPFS node`)
    const encoded = files.map(({ path, bytes }) => ({ path, base64: Buffer.from(bytes).toString('base64') }))
    await agentd.json(target, {
      method: 'PUT',
      path: skillPath(name),
      json: { cid, files: encoded, resolution } satisfies SkillFiles,
      epoch: agent.epoch,
      timeoutMs: WRITE_MS,
      signal: run.signal,
    })
    return undefined
  } catch (error) {
    run.signal.throwIfAborted()
    if (error instanceof BadSkill) return problem('content', error.message)
    if (error instanceof StorageError) return problem('away', error.message)
    if (!(error instanceof AgentdError)) throw error
    if (error.code === 'disk_full') return problem('disk_full', error.message)
    if (IN_THE_WAY.includes(error.code)) return problem('conflict', error.message)
    if (error.code === 'bad_request') return problem('content', error.message)
    throw error
  }
}

async function wantedSkills(
  { pool, storages }: AgentWorkerServices,
  agent: Agent,
  signal: AbortSignal,
): Promise<WantedSkill[]> {
  const { rows } = await readWantedSkills.run(pool, agent.id)
  const attached = rows.map(({ name, cid, network }) => ({
    name,
    cid,
    files: () => readSkill(storages, network, cid, signal),
  }))
  if (attached.some(({ name }) => name === PLATFORM_SKILL)) return attached
  const platform = (await bundledSkills()).find(({ slug }) => slug === PLATFORM_SKILL)
  if (!platform) throw new Error(`${PLATFORM_SKILL} is not where it ships`)
  return [
    ...attached,
    { name: PLATFORM_SKILL, cid: String(platform.skillCid), files: () => platform.files(signal) },
  ]
}

/** agentd's path for the folder of a skill. */
const skillPath = (name: string): string => `/v1/skills/${encodeURIComponent(name)}`
