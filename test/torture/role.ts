/** A process of Berth (`web`, `worker` or `agent-proxy`) that is restarted whenever it ends, as by a supervisor. */

import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Running, run } from '../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const PAUSE_MS = 200

export type RoleName = 'web' | 'worker' | 'agent-proxy'

export class Role {
  readonly name: RoleName
  /** How it exited by itself so far, including the crashes that a test requested. */
  readonly ends: { at: number; code: number | null; signal: string | null; output: string }[] = []
  #running: Running
  #stopping = false
  #life: Promise<void>
  #env: NodeJS.ProcessEnv
  #output = ''

  constructor(name: RoleName, env: NodeJS.ProcessEnv) {
    this.name = name
    this.#env = env
    this.#running = this.#launch()
    this.#life = this.#keep()
  }

  /** Output of all its runs. */
  output(): string {
    return this.#output + this.#running.output()
  }

  /** SIGKILL; it restarts after a short pause. */
  kill(): void {
    this.#running.process.kill('SIGKILL')
  }

  /** Hangs it, like a machine that is short of memory; `resume` continues it. */
  pause(): void {
    this.#running.process.kill('SIGSTOP')
  }

  resume(): void {
    this.#running.process.kill('SIGCONT')
  }

  /** Stops it in good order and restarts it with other settings. */
  async restart(env: NodeJS.ProcessEnv = this.#env): Promise<void> {
    await this.stop()
    this.#output += this.#running.output()
    this.#env = env
    this.#stopping = false
    this.#running = this.#launch()
    this.#life = this.#keep()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await this.#running.end('SIGTERM')
    await this.#life
  }

  #launch(): Running {
    // Only one process can have the port; the tests read the metrics of `web`.
    const env = this.name === 'web' ? this.#env : { ...this.#env, BERTH_METRICS_PORT: '' }
    return run(process.execPath, [MAIN, this.name], { env })
  }

  async #keep(): Promise<void> {
    for (;;) {
      const { process: child } = this.#running
      const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
        child.once('close', (...how) => resolve(how))
      })
      if (this.#stopping) return
      const output = this.#running.output()
      this.ends.push({ at: performance.now(), code, signal, output })
      this.#output += output
      await delay(PAUSE_MS)
      if (this.#stopping) return
      this.#running = this.#launch()
    }
  }
}
