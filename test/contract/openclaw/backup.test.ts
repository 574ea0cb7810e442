/** An agent with the real engine in a backup: it runs again elsewhere, with its workspace, tasks and devices. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { clientOf, makeDir } from '../../backup/world.ts'
import { ensureEngines } from '../../support/engines.ts'
import { until } from '../../support/processes.ts'
import { cli, type Stack, startStack } from '../../support/stack.ts'
import { live, remove, running } from './context.ts'
import { Device } from './device.ts'

const stops: (() => Promise<unknown>)[] = []
after(async () => {
  for (const stop of stops.reverse()) await stop()
})

it('a restored agent runs with its workspace, tasks and devices', {
  timeout: 500_000,
}, async () => {
  const enginesDir = await ensureEngines()
  const { path: root, remove: removeRoot } = await makeDir()
  stops.push(removeRoot)
  let stack: Stack | undefined
  stops.push(async () => stack?.stop())
  const start = (name: string) =>
    startStack({
      kind: 'embedded',
      env: { BERTH_RUNTIME: 'process', BERTH_ENGINES_DIR: enginesDir, BERTH_DATA_DIR: join(root, name) },
    })
  stack = await start('first')
  const key = await stack.createKey()
  const api = await clientOf(stack.url, key)
  const { agentId } = (await api.post('/v0/agents', { name: 'Moved' }, { prefer: 'respond-async' })).body
    .agent
  // Its own client returns each 503 immediately; this one retries while the engine stalls.
  const { path, record, api: patient } = await running(api, agentId)
  const exec = async (client: typeof api, command: string): Promise<string> =>
    (await client.post(`${path}/console/exec`, { command })).body.stdout
  await exec(api, 'echo mine > ~/clawd/workspace/note.txt; echo draft > ~/clawd/.unsaved')
  const schedule = { kind: 'cron', expr: '0 9 * * *', tz: 'Europe/Berlin' }
  const task = { name: 'Morning', schedule, payload: { kind: 'agentTurn', message: 'Good morning' } }
  assert.equal((await patient.post(`${path}/tasks`, task)).status, 200)
  const way = (url: string) => ({
    url,
    host: `${agentId}.agents.localhost:${new URL(url).port}`,
    token: record.gatewayToken,
  })
  const device = new Device()
  const { error } = await device.connect(way(stack.url))
  assert.equal((await patient.post(`${path}/devices/${error?.details.requestId}/approve`, {})).status, 200)
  const namesOf = async (client: typeof api): Promise<string[]> => {
    const { status, body } = await client.get(`${path}/tasks`)
    assert.equal(status, 200, JSON.stringify(body))
    return body.jobs.map(({ id, name }: Record<string, string>) => `${id} ${name}`)
  }
  const tasks = await namesOf(patient)
  // Enough for a request for the engine's tasks to arrive while the home is read.
  await exec(api, 'head -c 100000000 /dev/urandom > ~/large')
  const processOf = async () => (await live(api, path)).body.processId
  const before = await processOf()
  const statuses = new Set<number>()
  const passphrase = { BERTH_BACKUP_PASSPHRASE: 'a passphrase of the tests' }
  const backup = cli({ ...stack.env, ...passphrase })('backup', join(root, 'backups'), '--with-keys')
  const ended = backup.then(() => true)
  while (
    !(await Promise.race([
      ended,
      api.get(`${path}/tasks`).then(({ status }) => statuses.add(status) && false),
    ]))
  );
  assert.doesNotMatch(await backup, /was not suspended/)
  assert(statuses.has(503), 'the engine accepts no calls while its home is read')
  assert.deepEqual(await namesOf(patient), tasks, 'and resumes at once')
  assert.equal(await processOf(), before)
  await stack.stop()
  stack = undefined

  const env = { ...process.env, BERTH_RUNTIME: 'process', BERTH_ENGINES_DIR: enginesDir }
  const settings = {
    BERTH_DATA_DIR: join(root, 'second'),
    BERTH_BACKUP_PASSPHRASE: 'a passphrase of the tests',
  }
  await cli({ ...env, ...settings })('restore', join(root, 'backups'))
  stack = await start('second')
  const again = await clientOf(stack.url, key)
  // Until a worker has checked, its row says that it runs, as it did at the backup.
  const { url } = stack
  await until('its gateway responds', async () => (await device.connect(way(url))).ok, 300_000)
  const moved = await running(again, agentId)
  assert.equal(await exec(again, 'cat ~/clawd/workspace/note.txt ~/clawd/.unsaved'), 'mine\ndraft\n')
  assert.equal(tasks.length, 1)
  assert.deepEqual(await namesOf(moved.api), tasks)
  await remove(again, agentId)
})
