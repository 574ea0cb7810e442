/** A real agentd with the real engine and a model, for tests of how agentd handles them. */
import { join } from 'node:path'
import { defaultConfig, modelEnvironment, ownedConfig } from '../../src/openclaw/config.ts'
import { type HttpResponse, TestAgentd, until } from '../integration/agentd/agentd.ts'
import { ENGINE_VERSION, ensureEngines } from '../support/engines.ts'
import { MODEL, MODEL_KEY, type ModelServer, startModel } from '../support/model.ts'

export const GATEWAY_TOKEN = '6f1dd1f4-4b5e-4a30-9a55-0c9f0f8d3c11'

export interface EngineTest {
  agentd: TestAgentd
  model: ModelServer
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

/** @param env secrets of the agent. @param standIn folder of a stand-in, instead of the real engine. */
export async function startEngine(env: Record<string, string> = {}, standIn?: string): Promise<EngineTest> {
  const engineDir = standIn ?? join(await ensureEngines(), ENGINE_VERSION)
  const model = await startModel()
  const withIt = {
    BERTH_MODEL_URL: model.url,
    BERTH_MODEL: MODEL,
    BERTH_MODEL_KEY: MODEL_KEY,
    BERTH_MODEL_CONTEXT: 128_000,
  }
  const agentd = await TestAgentd.start({ engineDir })
  const test: EngineTest = {
    agentd,
    model,
    async run(withModel = true) {
      const config = withModel ? withIt : { ...withIt, BERTH_MODEL_URL: undefined }
      const { gateway } = await agentd.status()
      await agentd.start({
        env: { ...modelEnvironment(config), ...env },
        gatewayToken: GATEWAY_TOKEN,
        ownedConfig: ownedConfig({
          config,
          runtime: 'process',
          agent: { gatewayToken: GATEWAY_TOKEN },
          channels: {},
        }),
        defaultConfig: defaultConfig({ config }),
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
