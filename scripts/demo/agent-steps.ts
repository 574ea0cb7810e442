/** The steps that demos of agents share: a Berth with a model, an agent, and its end. */
import { join } from 'node:path'
import { enginesDir } from '../../test/support/engines.ts'
import { type ModelServer, startModel } from '../../test/support/model.ts'
import { type AgentView, DemoAgent } from './agent.ts'
import { type Berth, startBerth, UnexpectedAnswer } from './berth.ts'
import type { Demo } from './run.ts'

/** The domain of the agents' hosts. */
export const AGENT_DOMAIN = 'agents.localhost'
/** How long a demo waits for an agent to disappear. */
const REMOVE_MS = 60_000

/** Starts a model server on loopback, and Berth with it as the default model. New agents run the first engine version. */
export async function startWithModel(
  { screen, stack, signal, temp, parts, runtime }: Demo,
  { versions, env: more = {} }: { versions: string[]; env?: NodeJS.ProcessEnv },
): Promise<{ berth: Berth; model: ModelServer }> {
  const model = await screen.step('Model', async () => {
    const model = await startModel()
    stack.defer(() => model.stop())
    return [model, `an OpenAI-compatible server on loopback, port ${new URL(model.url).port}`]
  })
  const berth = await screen.step('Berth', async () => {
    const env = {
      ...(runtime && { BERTH_RUNTIME: runtime }),
      // The only setting of the shell that counts: without a registry, no other image may be available.
      BERTH_BASE_IMAGE: process.env.BERTH_BASE_IMAGE ?? '',
      BERTH_ENGINE_VERSIONS: versions.join(','),
      BERTH_ENGINES_DIR: enginesDir,
      BERTH_AGENT_DOMAIN: AGENT_DOMAIN,
      ...model.env,
      ...more,
    }
    const berth = await startBerth({ dataDir: join(temp, 'berth'), parts, stack, signal, env })
    return [berth, berth.url]
  })
  return { berth, model }
}

/** Creates an agent and shows its provisioning steps as they come. Resolves when it runs; the stack removes it. */
export async function createAgent(
  { screen, stack, signal }: Demo,
  berth: Berth,
  body: Record<string, unknown>,
): Promise<DemoAgent> {
  const began = performance.now()
  const request = await screen.step('Request', async () => {
    const headers = { prefer: 'respond-async' }
    const response = await berth.request('POST', '/v0/agents', { signal, headers, body })
    const { agent } = (await response.json()) as { agent: AgentView }
    return [
      { agent, operation: response.headers.get('operation-id') ?? '' },
      `${response.status}, agent ${agent.agentId} is ${agent.status}`,
    ]
  })
  const agent = new DemoAgent(berth, request.agent, { domain: AGENT_DOMAIN, signal })
  stack.defer(() => removeAgent(berth, agent))
  await screen.step('Provision', async (live) => {
    const steps: { name: string; at: number }[] = []
    const now = () => performance.now() - began
    live(() => steps.map(({ name }) => name).join(' → '))
    for await (const { step } of berth.follow(request.operation, signal)) {
      if (step && steps.at(-1)?.name !== step) steps.push({ name: step, at: now() })
    }
    const ends = [...steps.slice(1).map(({ at }) => at), now()]
    const text = steps.map(({ name, at }, i) => `${name} ${(((ends[i] ?? at) - at) / 1000).toFixed(1)} s`)
    return [undefined, text.join(' → ')]
  })
  const { agentVersion } = await agent.running()
  screen.detail(`running OpenClaw ${agentVersion} at http://${agent.host}`)
  return agent
}

/** Deletes the agent and waits until nothing of it is left; a repeat finds it gone. */
export async function removeAgent(berth: Berth, agent: DemoAgent): Promise<void> {
  await berth
    .request('DELETE', `/v0/agents/${agent.id}`, {
      // Even if the demo was interrupted.
      signal: AbortSignal.timeout(REMOVE_MS),
      headers: { prefer: 'wait=60' },
    })
    .catch((error) => {
      if (!(error instanceof UnexpectedAnswer && error.status === 404)) throw error
    })
}
