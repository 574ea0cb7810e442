/** LiteLLM's proxy from PyPI in front of a model server, as an alternative to the model gateway. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort, run, until } from '../../support/processes.ts'

const SCRIPT = fileURLToPath(new URL('../../../scripts/ci/litellm.sh', import.meta.url))
/** The first import of its modules takes most of it. */
const START_MS = 120_000

/**
 * Installs it once, and starts one worker without a database: it checks a key, but no budget.
 * @returns its URL, ending in /v1. @throws Error with its output if it does not start.
 */
export async function startLitellm(
  dir: string,
  { model, key, stack }: { model: string; key: string; stack: AsyncDisposableStack },
): Promise<string> {
  // It would fetch a list of prices at each start.
  const env = { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' }
  const { stdout } = await promisify(execFile)(SCRIPT, { env })
  const program = stdout.trim().split('\n').at(-1) ?? ''
  const config = join(dir, 'litellm.json')
  const params = { model: 'openai/m', api_base: model, api_key: 'unused' }
  // YAML includes JSON.
  await writeFile(
    config,
    JSON.stringify({
      model_list: [{ model_name: 'm', litellm_params: params }],
      general_settings: { master_key: key },
    }),
  )
  const port = await freePort()
  const args = ['--config', config, '--host', '127.0.0.1', '--port', `${port}`, '--num_workers', '1']
  const running = run(program, args, { env })
  stack.defer(() => running.end())
  const url = `http://127.0.0.1:${port}`
  await until('LiteLLM answers', async () => (await fetch(`${url}/health/liveliness`)).ok, START_MS).catch(
    (error) => {
      throw new Error(`${error.message}\n${running.output()}`, { cause: error })
    },
  )
  return `${url}/v1`
}
