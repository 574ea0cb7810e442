/** A client of the disk helper (`src/roles/disks.ts`) for the Docker driver, and volumes on its disks. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { DiskPlace, DisksReport } from '../../disks/agent-disks.ts'
import { SandboxError } from '../../errors.ts'
import { within } from '../../lib/signals.ts'

/** Long, because the helper runs calls one after another. */
const CALL_MS = 60_000

export class DiskHelper {
  readonly #socketPath: string

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  /** Creates the agent's disk, and sets its limit. @throws SandboxError */
  ensure(agentId: string, bytes: number | undefined, signal: AbortSignal | undefined): Promise<DiskPlace> {
    return this.#call<DiskPlace>('PUT', `/disks/${agentId}`, signal, { bytes: bytes ?? null })
  }

  /** @throws SandboxError */
  async remove(agentId: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#call('DELETE', `/disks/${agentId}`, signal)
  }

  /** All disks of the helper, and the space left for them. @throws SandboxError */
  read(signal: AbortSignal | undefined): Promise<DisksReport> {
    return this.#call<DisksReport>('GET', '/disks', signal)
  }

  /** The agents that have a disk. @throws SandboxError */
  async list(signal: AbortSignal | undefined): Promise<string[]> {
    return (await this.read(signal)).disks.map(({ agentId }) => agentId)
  }

  async #call<T>(method: string, path: string, signal: AbortSignal | undefined, body?: unknown): Promise<T> {
    const either = within(CALL_MS, signal)
    let status: number | undefined
    let answer: string
    try {
      const sent = request({ socketPath: this.#socketPath, agent: false, method, path, signal: either })
      sent.end(body === undefined ? undefined : JSON.stringify(body))
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      status = response.statusCode
      answer = await text(response)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      const message = `the disk helper does not answer (BERTH_DISKS_SOCKET): ${(error as Error).message}`
      throw new SandboxError('unreachable', message, { cause: error })
    }
    if (status === 200) return JSON.parse(answer)
    if (status === 204) return undefined as T
    throw new SandboxError(status === 507 ? 'disk_full' : 'internal', `the disk helper: ${messageOf(answer)}`)
  }
}

function messageOf(answer: string): string {
  try {
    return JSON.parse(answer).error
  } catch {
    return answer.slice(0, 500)
  }
}

/** Options of Docker's own volume driver, which mounts the disk while a container uses it. */
export const mountOf = ({ device, subvolume }: DiskPlace) => ({
  type: 'btrfs',
  device,
  o: `nodiscard,subvol=${subvolume}`,
})

/** True for a volume on one of the helper's disks. */
export const isOnDisk = ({ Options }: { Options?: Record<string, string> | null }): boolean =>
  Options?.type === 'btrfs'
