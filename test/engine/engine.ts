/** A real agentd with the real engine and a model, for tests of how agentd handles them. */
import type { Json } from '../../agentd/json.ts'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { modelEnvironment } from '../../src/openclaw/models.ts'
import { type HttpResponse, TestAgentd, until } from '../integration/agentd/agentd.ts'
import { compiledEngine } from '../support/engines.ts'
import { MODEL_KEY, type ModelServer, startModel } from '../support/model.ts'

export const GATEWAY_TOKEN = '6f1dd1f4-4b5e-4a30-9a55-0c9f0f8d3c11'

type Model = Pick<ModelServer, 'url' | 'stop'>

export interface EngineTest<M extends Model = ModelServer> {
  agentd: TestAgentd
  model: M
  /**
   * Starts the gateway, or another run of it, like a worker; resolves when it is ready.
   * @param withModel false for an operator without a model.
   */
  run(withModel?: boolean): Promise<void>
  close(): Promise<void>
}

/** Retries if agentd could not reach the gateway, which stalls on a busy machine, especially after its start. */
export function whenReady<T extends object>(ask: () => Promise<HttpResponse<T>>): Promise<HttpResponse<T>> {
  return until('the gateway takes the call', 60_000, async () => {
    const answer = await ask()
    const isStalled = answer.status === 503 && 'error' in answer.body && answer.body.error === 'not_ready'
    return isStalled ? undefined : answer
  })
}

/**
 * @param env secrets of the agent.
 * @param options.engineDir of another version, or of a stand-in. @param options.config is added to the owned one.
 */
export async function startEngine(
  env: Record<string, string> = {},
  options: { engineDir?: string; config?: Json } = {},
): Promise<EngineTest> {
  return startWith(await startModel(), env, options)
}

/** Like {@link startEngine}, with a model of the test's own. */
export async function startWith<M extends Model>(
  model: M,
  env: Record<string, string>,
  { engineDir, config: more = {} }: { engineDir?: string; config?: Json },
): Promise<EngineTest<M>> {
  // The model itself, in place of the gateway before it.
  const access = { url: model.url.replace(/\/v1$/, ''), key: MODEL_KEY }
  const agentd = await TestAgentd.start({
    engineDir: engineDir ?? (await compiledEngine()),
  })
  const test: EngineTest<M> = {
    agentd,
    model,
    async run(withModel = true) {
      const config = { BERTH_MODEL_URL: withModel ? model.url : undefined, BERTH_MODEL_CONTEXT: 128_000 }
      const options = { config, secrets: env, localModel: null }
      const { gateway } = await agentd.status()
      await agentd.start({
        env: { ...env, ...modelEnvironment({ config, access, secrets: env }) },
        gatewayToken: GATEWAY_TOKEN,
        ownedConfig: ownedConfig({
          ...options,
          access,
          agent: { gatewayToken: GATEWAY_TOKEN },
          channels: more,
        }),
        defaultConfig: defaultConfig(options),
        readyMs: 170_000,
      })
      await agentd.until('ready', 180_000, ({ gateway: now }) => {
        if (now.state === 'failed') throw new Error(`${now.reason}\n${now.lastLines.join('\n')}`)
        return now.state === 'ready' && now.run !== gateway.run
      })
    },
    async close() {
      await agentd.close()
      await model.stop()
    },
  }
  await test.run()
  return test
}
