/**
 * Compiles an engine: boots it once without an agent, and keeps V8's code of everything it loads until it is ready.
 *
 *     node compile-engine.ts <folder of the engine> <folder for the code> <free port of loopback>
 *
 * Node keeps code by user, so the user that agents run as has to run this. Exits with 1 if the engine does not become
 * ready. It imports no other file of agentd, because the engine's image is rebuilt whenever it changes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A boot takes 10 s, and on a very busy machine ten times that. */
const RUN_MS = 180_000
const STOP_MS = 20_000
const PROBE_MS = 2000
const POLL_MS = 200

const [engine = '', folder = '', port = ''] = process.argv.slice(2)
const home = mkdtempSync(join(tmpdir(), 'berth-compile-'))
let running: ChildProcess | undefined
process.once('SIGTERM', () => {
  running?.kill('SIGKILL')
  removeHome()
  process.exit(1)
})

writeConfig()
// agentd runs this for each new config.
await endOf(start('config', 'validate', '--json'))
const gateway = start('gateway', 'run', '--bind', 'loopback', '--port', port)
const isReady = await becomesReady()
// Node writes the code when the process exits.
gateway.kill('SIGTERM')
const late = setTimeout(() => gateway.kill('SIGKILL'), STOP_MS)
await endOf(gateway)
clearTimeout(late)
removeHome()
process.exitCode = isReady ? 0 : 1

function start(...args: string[]): ChildProcess {
  running = spawn(process.execPath, [join(engine, 'node_modules/openclaw/openclaw.mjs'), ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      NODE_COMPILE_CACHE: folder,
      // Otherwise the launcher starts itself again below a process that only waits.
      OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: '1',
      OPENCLAW_NO_RESPAWN: '1',
      OPENCLAW_NO_AUTO_UPDATE: '1',
      OPENCLAW_DISABLE_BONJOUR: '1',
    },
    stdio: 'ignore',
    timeout: RUN_MS,
    killSignal: 'SIGKILL',
  })
  return running
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function endOf(program: ChildProcess): Promise<void> {
  if (!hasEnded(program)) await once(program, 'exit')
}

function removeHome(): void {
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
}

/** The settings of an agent's gateway that decide what it loads; see src/openclaw/config.ts. */
function writeConfig(): void {
  const endpoints = { chatCompletions: { enabled: true }, responses: { enabled: true } }
  const auth = { mode: 'token', token: 'compile' }
  const config = {
    gateway: {
      mode: 'local',
      bind: 'loopback',
      port: Number(port),
      auth,
      controlUi: { enabled: false },
      http: { endpoints },
    },
    update: { checkOnStart: false },
    telemetry: { enabled: false },
    discovery: { mdns: { mode: 'off' } },
    browser: { enabled: false },
    plugins: { entries: { 'admin-http-rpc': { enabled: true } } },
  }
  mkdirSync(join(home, '.openclaw'))
  writeFileSync(join(home, '.openclaw/openclaw.json'), JSON.stringify(config))
}

async function becomesReady(): Promise<boolean> {
  while (!hasEnded(gateway)) {
    const signal = AbortSignal.timeout(PROBE_MS)
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal }).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok) return true
    await sleep(POLL_MS)
  }
  return false
}
