/** Applying the manifest of an agent, from its text. */
import { checkManifest, MANIFEST_BYTES } from '../../agentd/manifest-check.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import { type Applied, applyManifest } from '../../src/agents/manifest/apply.ts'
import type { Run } from '../../src/operations/runner.ts'
import type { AgentWorkerServices } from './services.ts'
import { applySkills } from './skills.ts'

const NOTHING: Applied = { applied: [], problems: [] }

/**
 * Applies a manifest, the folders of its skills included. One that is not valid is a problem; so is what the agent lacks
 * for it, and it comes up without.
 * @param text undefined where the agent has none.
 */
export async function applyManifestText(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  text: string | undefined,
): Promise<Applied> {
  await run.report('manifest')
  if (text === undefined) return NOTHING
  const checked = checkManifest(text)
  if ('errors' in checked) return { ...NOTHING, problems: checked.errors }
  const result = await applyManifest(services, run, agent, target, checked.manifest)
  const skills = checked.manifest.skills?.length ? await applySkills(services, run, agent, target) : []
  const problems = [...result.problems, ...skills.map(({ name, message }) => `skills: ${name}: ${message}`)]
  if (problems.length > 0)
    run.log.warn({ agentId: agent.agentId, problems }, 'parts of a manifest are not applied')
  return { ...result, problems }
}

/** Applies the manifest that a new agent begins with, of a template above all. Its gateway has to be ready. */
export async function applyFirstManifest(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
): Promise<Applied> {
  const path = `/v1/file?${new URLSearchParams({ path: 'manifest.json', max: `${MANIFEST_BYTES}` })}`
  const text = await services.agentd
    .bytes(target, { path, maxBytes: MANIFEST_BYTES, signal: run.signal })
    .then(({ body }) => body.toString('utf8'))
    .catch((error) => {
      // `build` may have made anything of it already.
      if (error instanceof AgentdError && error.status >= 400 && error.status < 500) return undefined
      throw error
    })
  return applyManifestText(services, run, agent, target, text)
}
