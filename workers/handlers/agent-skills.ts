import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { SKILL_CONFLICT } from '../../src/agents/skills/index.ts'
import type { SkillProblem } from '../../src/db/statements/agents.ts'
import { messages } from '../../src/errors.ts'
import { OperationFailed, RetryLater, type Run } from '../../src/operations/handler.ts'
import { agentHandler } from '../agents/handler.ts'
import { applySkills } from '../agents/skills.ts'
import type { AgentWorkerServices } from '../services.ts'

/**
 * Updates an agent's skill folders to match its attached skills. Fails only with problems of the skills that the
 * request names. The agent's status lists all problems.
 */
export const skills = agentHandler('agent.skills', 'as it is', (services) => ({
  async handle(run, agent) {
    const problems = await applyWhereUp(services, run, agent)
    const { names } = run.input
    const asked = problems?.filter(({ name }) => names === undefined || names.includes(name)) ?? []
    const [first] = asked
    if (first) throw failureOf(asked, first)
    return run.succeed({ applied: problems !== undefined })
  },
}))

function failureOf(problems: SkillProblem[], { code }: SkillProblem): OperationFailed {
  const cause = problems.map(({ name, message }) => `${name}: ${message}`).join('; ')
  const result = { applied: true, problems }
  if (code === 'away')
    return new RetryLater('outage', cause, { publicMessage: messages.ipfsUnreachable, result })
  if (code === 'conflict')
    return new OperationFailed(SKILL_CONFLICT, cause, {
      publicMessage: `Skill version conflict: ${cause}`,
      result,
    })
  return new OperationFailed(`skill_${code}`, cause, { publicMessage: cause, result })
}

/** Undefined if the agent does not respond: it gets its skills when it starts. */
async function applyWhereUp(
  services: AgentWorkerServices,
  run: Run<'agent.skills'>,
  agent: Agent,
): Promise<SkillProblem[] | undefined> {
  if (!agent.address) return undefined
  try {
    return await applySkills(services, run, agent, agent, run.input.resolutions)
  } catch (error) {
    run.signal.throwIfAborted()
    if (!(error instanceof AgentdError) || error.status !== 0) throw error
    run.log.info({ err: error }, 'the agent gets its skills when it starts')
    return undefined
  }
}
