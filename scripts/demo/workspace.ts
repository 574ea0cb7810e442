/** Helpers that the acts of `npm run demo:workspace` share. */
import { setTimeout as delay } from 'node:timers/promises'
import type { DemoAgent } from './agent.ts'
import type { Berth } from './berth.ts'
import type { Demo } from './run.ts'

export interface Workspace extends Pick<Demo, 'screen' | 'signal' | 'temp'> {
  berth: Berth
  agent: DemoAgent
}

const POLL_MS = 200

/** Runs a command in the agent's root; resolves to its output. Throws if it fails. */
export async function exec({ agent }: Pick<Workspace, 'agent'>, command: string): Promise<string> {
  const { stdout, stderr, exitCode } = await agent.call<{ stdout: string; stderr: string; exitCode: number }>(
    'POST',
    '/console/exec',
    { command, cwd: '/home/node/clawd' },
  )
  if (exitCode !== 0) throw new Error(`${command}: exit code ${exitCode}: ${stderr.trim()}`)
  return stdout.trim()
}

/** Retries until `check` resolves to something. If the demo ends first, the last error is the reason. */
export async function until<T>(signal: AbortSignal, check: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await check()
    if (found !== undefined) return found
    await delay(POLL_MS, undefined, { signal })
  }
}
