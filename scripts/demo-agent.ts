/**
 * `npm run demo:agent`: the life of an agent on the real engine, from its creation to its deletion.
 *
 * Berth starts on this machine, with a small model server on loopback as the default model. The demo creates an agent,
 * shows its steps, and talks to it over WebSocket and HTTP. The agent runs a command and gets a file and a task. Then
 * its token is rotated, it is restarted on another engine version, and deleted.
 *
 * Nothing has to be installed: an engine version is fetched once, into a cache of this user. Agents run in Docker if it
 * answers, otherwise as processes; `-- --runtime docker` or `-- --runtime process` selects one. The demo stops
 * everything that it starts and removes all data, even on Ctrl-C.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DemoAgent } from './demo/agent.ts'
import { createAgent, removeAgent, startWithModel } from './demo/agent-steps.ts'
import { type Demo, runDemo } from './demo/run.ts'
import { bytes } from './demo/screen.ts'

const LIMIT_MS = 10 * 60_000
const POLL_MS = 200
const VERSIONS = { first: '2026.9.5', second: '2026.9.6' }
const FILE_BYTES = 100_000
/** Resolves when the agent runs again. */
const RESTARTED = { prefer: 'wait=120' }

await runDemo({ title: 'The life of an agent', limitMs: LIMIT_MS }, demo)

async function demo(of: Demo): Promise<void> {
  const { screen, signal } = of
  const began = performance.now()
  const { berth } = await startWithModel(of, { versions: Object.values(VERSIONS) })
  screen.section('An agent')
  const agent = await createAgent(of, berth, { name: 'Demo', vibe: 'short and friendly', emoji: '⚓' })

  screen.section('Chat')
  await screen.step('WebSocket', async () => {
    const { text, firstMs, ms } = await agent.chat('Hello from the demo')
    return [
      undefined,
      `“${text}”, first part after ${Math.round(firstMs)} ms, all after ${Math.round(ms)} ms`,
    ]
  })
  screen.detail(`ws://${agent.host}/, chat.send`)
  await screen.step('HTTP', async () => {
    const { text, firstMs, ms } = await agent.completion('Hello again')
    return [
      undefined,
      `“${text}”, first part after ${Math.round(firstMs)} ms, all after ${Math.round(ms)} ms`,
    ]
  })
  screen.detail(`POST http://${agent.host}/v1/chat/completions, streamed`)

  screen.section('Work')
  await work({ screen, signal }, agent)

  screen.section('Care')
  await care({ screen, signal }, agent)

  await screen.step('Delete', async () => {
    await removeAgent(berth, agent)
    if (!(await agent.isGone())) throw new Error('the agent is still there')
    return [undefined, 'its container and its volume are gone']
  })
  screen.detail(`DELETE /v0/agents/${agent.id}`)
  screen.summary(`A whole life in ${((performance.now() - began) / 1000).toFixed(1)} s.`)
}

type Shown = Pick<Demo, 'screen' | 'signal'>

async function work({ screen, signal }: Shown, agent: DemoAgent): Promise<void> {
  await screen.step('Console', async () => {
    const command = 'id -un; git --version; node --version'
    const { stdout, exitCode } = await agent.call<{ stdout: string; exitCode: number }>(
      'POST',
      '/console/exec',
      { command },
    )
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}`)
    return [undefined, stdout.trim().split('\n').join(', ')]
  })
  await screen.step('File', async () => {
    const content = randomBytes(FILE_BYTES)
    const { path } = await agent.call<{ path: string }>('POST', '/files/upload', {
      filename: 'demo.bin',
      contentBase64: content.toString('base64'),
    })
    if (!content.equals(await agent.readFile(path))) throw new Error('it came back otherwise')
    return [undefined, `${bytes(content.length)} uploaded to ${path} and read back, every byte the same`]
  })
  await screen.step('Task', async () => {
    const job = await agent.call<{ id: string }>('POST', '/tasks', {
      name: 'Say the time',
      schedule: { kind: 'every', everyMs: 3_600_000 },
      payload: { kind: 'agentTurn', message: 'What time is it?' },
    })
    await agent.call('POST', `/tasks/${job.id}/run`)
    for (;;) {
      const { entries } = await agent.call<{
        entries: { status: string; summary?: string; error?: string }[]
      }>('GET', `/tasks/${job.id}/runs`)
      const [run] = entries
      if (run && run.status !== 'ok') throw new Error(`the run ended as ${run.status}: ${run.error}`)
      if (run) return [undefined, `runs every hour; ran now: ${run.status}, “${firstLine(run.summary)}”`]
      await delay(POLL_MS, undefined, { signal })
    }
  })
}

async function care({ screen, signal }: Shown, agent: DemoAgent): Promise<void> {
  await screen.step('Token', async () => {
    const old = agent.token
    const { token } = await agent.call<{ token: string }>(
      'POST',
      '/gateway-token/rotate',
      undefined,
      RESTARTED,
    )
    agent.token = token
    const { statusCode } = await agent.onHost('GET', '/v0/status', undefined, old)
    if (statusCode !== 401) throw new Error(`the old one gets ${statusCode}`)
    await agent.running()
    return [undefined, 'rotated: the old one gets 401 at once, and the agent runs again']
  })
  await screen.step('Version', async () => {
    const tasks = () => agent.call<{ jobs: unknown[] }>('GET', '/tasks').then(({ jobs }) => jobs.length)
    const before = await tasks()
    await agent.call('POST', '/restart', { version: VERSIONS.second }, RESTARTED)
    const { agentVersion } = await agent.running()
    if (agentVersion !== VERSIONS.second) throw new Error(`it runs ${agentVersion}`)
    if ((await tasks()) !== before) throw new Error('its tasks are gone')
    return [undefined, `restarted on OpenClaw ${agentVersion}, with its tasks and files`]
  })
  await screen.step('Chat', async () => {
    signal.throwIfAborted()
    const { text, ms } = await agent.chat('Are you still there?')
    return [undefined, `“${text}”, after ${Math.round(ms)} ms`]
  })
}

function firstLine(text = ''): string {
  return text.split('\n', 1)[0] ?? ''
}
