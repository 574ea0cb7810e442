/** The sandboxes that the cases of the port run on. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { SandboxError, type SandboxErrorCode } from '../../../src/errors.ts'
import type { SandboxRuntime, SandboxSpec } from '../../../src/sandboxes/port.ts'

/** A driver under test, with two engine versions available. */
export interface Subject {
  runtime: SandboxRuntime
  /** Another instance of Berth on the same machine, and a second driver of the same instance, like another worker. */
  stranger: SandboxRuntime
  colleague: SandboxRuntime
  close(): Promise<void>
}

export const VERSIONS = ['2026.1.1', '2026.1.2'] as const

export const newAgent = (): string => `x${randomBytes(6).toString('hex').slice(0, 7)}`

export function specOf(agentId: string, changes: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    agentId,
    engine: 'openclaw',
    engineVersion: VERSIONS[0],
    hostname: `${agentId}-0`,
    env: { AGENT_COLOUR: 'blue' },
    agentd: { agentId, tokenHash: '0'.repeat(64), diskBytes: 64 * 1024 * 1024 },
    limits: { memoryBytes: 256 * 1024 * 1024, cpus: 1, pids: 100 },
    ...changes,
  }
}

/** Runs a shell command in a sandbox through the agentd stand-in. */
export async function runIn(
  address: string | null,
  command: string,
): Promise<{ code: number | null; output: string }> {
  assert(address, 'the sandbox has an address')
  const response = await fetch(`http://${address}/`, {
    method: 'POST',
    body: command,
    signal: AbortSignal.timeout(60_000),
  })
  return (await response.json()) as { code: number | null; output: string }
}

/** The output of a command, which must succeed. */
export async function outputIn(address: string | null, command: string): Promise<string> {
  const { code, output } = await runIn(address, command)
  assert.equal(code, 0, output)
  return output.trim()
}

export const failsWith = (code: SandboxErrorCode) => (error: unknown) => {
  assert(error instanceof SandboxError, String(error))
  assert.equal(error.code, code, error.message)
  return true
}
