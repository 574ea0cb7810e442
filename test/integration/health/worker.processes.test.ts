/** A worker that cannot reach Docker: its own report, the report of `web` about it, and the health check. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { observeWorkers } from '../../../src/health/workers.ts'
import type { Report } from '../../../src/lib/readiness.ts'
import { WorkerStatus } from '../../../src/operations/worker-status.ts'
import { useDatabase } from '../../support/database.ts'
import { useFolder } from '../../support/folder.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'
import { runCli } from '../../support/stack.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

const database = await useDatabase()
const dir = await useFolder('berth-worker-')

for (const { queues, status, code } of [
  { queues: '', status: 'degraded', code: 0 },
  { queues: 'agents,workspaces', status: 'down', code: 1 },
])
  describe(`a worker of ${queues || 'all queues'} without Docker`, () => {
    let worker: Running
    let env: NodeJS.ProcessEnv
    before(async () => {
      env = {
        PATH: process.env.PATH,
        DATABASE_URL: database.url,
        BERTH_DATA_DIR: dir,
        BERTH_IPFS_ROUTING_URL: '',
        BERTH_RUNTIME: 'docker',
        DOCKER_HOST: `unix://${join(dir, 'nothing.sock')}`,
        BERTH_QUEUES: queues,
        BERTH_HEALTH_PORT: String(await freePort()),
        BERTH_AGENT_PROXY_PORT: String(await freePort()),
      }
      worker = run(process.execPath, [MAIN, 'worker'], { env })
    })
    after(() => worker?.end())

    const ask = (path: string) => fetch(`http://127.0.0.1:${env.BERTH_HEALTH_PORT}${path}`)

    it(`a worker of ${queues || 'all queues'} without Docker runs, and is not ready if it needs Docker`, async () => {
      // On a busy machine, a part that does not answer in time is down for a moment.
      await until('it has checked its nodes, and all parts have answered', async () => {
        const answer = await ask('/readyz')
        const body = (await answer.json()) as Report
        assert.equal(body.parts.ipfs?.status, 'ok')
        assert.deepEqual([answer.status, body.status], [code === 0 ? 200 : 503, status])
        assert.deepEqual(body.parts.docker, { status: 'down', detail: 'is not at DOCKER_HOST' })
        return true
      })
      assert.equal((await ask('/healthz')).status, 200)
    })
    it(`a worker of ${queues || 'all queues'} without Docker reports it to the others`, async () => {
      const advice = 'See the log of the worker.'
      await until('it has written it into its row', async () => {
        const { docker } = await observeWorkers(new WorkerStatus(database.pool))
        assert.deepEqual(docker, { status: 'down', detail: 'is not at DOCKER_HOST', advice })
        return true
      })
    })
    it(`\`berth health\` and \`berth health docker\` detect a worker of ${queues || 'all queues'} without Docker`, async () => {
      // As above.
      await until('`berth health` and its variants report it', async () => {
        const plain = await runCli(env, 'health')
        assert.deepEqual([plain.code, plain.stdout.split('\n')[0]], [code, status])
        const named = await runCli(env, 'health', 'docker')
        assert.equal(named.code, 1)
        assert.match(named.stdout, /^docker: is not at DOCKER_HOST$/m)
        assert.equal((await runCli(env, 'health', 'database', 'a part that it does not have')).code, code)
        return true
      })
    })
    it(`\`berth doctor\` does not mistake a worker of ${queues || 'all queues'} without Docker for \`web\``, async () => {
      const { stdout } = await runCli(
        { ...env, PUBLIC_URL: `http://127.0.0.1:${env.BERTH_HEALTH_PORT}` },
        'doctor',
      )
      assert.match(stdout, /! Web +another role answers/m)
    })
  })

it('`berth health` fails if nothing answers', async () => {
  const { code, stdout } = await runCli({ PATH: process.env.PATH, PORT: String(await freePort()) }, 'health')
  assert.equal(code, 1)
  assert.match(stdout, /does not answer: .*ECONNREFUSED/)
})
