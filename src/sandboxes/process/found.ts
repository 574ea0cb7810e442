/** Reads the recorded state of a sandbox. */
import { SandboxError } from '../../errors.ts'
import { isAlive } from '../../lib/process/process-identity.ts'
import type { Sandbox } from '../port.ts'
import { type AgentPaths, readState, type SandboxState } from './state.ts'

/** @throws SandboxError `not_found` */
export async function existing(paths: AgentPaths, agentId: string): Promise<SandboxState> {
  const state = await readState(paths)
  if (state) return state
  throw new SandboxError('not_found', `there is no sandbox of ${agentId}`)
}

export async function toSandbox({ spec, run }: SandboxState): Promise<Sandbox> {
  const running = run?.leader ? await isAlive(run.leader) : false
  return {
    agentId: spec.agentId,
    state: running ? 'running' : run ? 'exited' : 'created',
    engineVersion: spec.engineVersion,
    address: running && run?.port ? `127.0.0.1:${run.port}` : null,
    exitCode: running ? null : (run?.exitCode ?? null),
    // The kernel does not report this for processes.
    oomKilled: false,
    startedAt: run?.startedAt ?? null,
  }
}
