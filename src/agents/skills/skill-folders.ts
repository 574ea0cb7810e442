/**
 * The folders of skills in an agent, as its agentd reports them. The response is untrusted: it is checked and bounded.
 */
import { z } from 'zod'
import type { SkillFolder } from '../../../agentd/protocol.ts'
import type { AgentdClient, AgentdTarget } from '../agentd-client.ts'
import { SKILL_NAME } from './skill-schema.ts'

/** Long, because agentd hashes whatever the agent has put there. */
const READ_MS = 30_000
/** The code of an operation that ended because a folder of the agent would be lost. */
export const SKILL_CONFLICT = 'skill_version_conflict'

const answer = z.object({
  skills: z
    .array(
      z.object({
        name: z.string().regex(SKILL_NAME),
        cid: z.string().max(512).nullable(),
        state: z.enum(['same', 'modified', 'missing']),
      }),
    )
    .max(5000),
})

/** Asks agentd for the folders of skills. @throws AgentdError */
export async function readSkillFolders(
  agentd: AgentdClient,
  target: AgentdTarget,
  signal: AbortSignal,
): Promise<SkillFolder[]> {
  return (await agentd.json(target, { path: '/v1/skills', timeoutMs: READ_MS, signal }, answer)).skills
}
