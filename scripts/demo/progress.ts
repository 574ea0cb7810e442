import type { Operation } from './berth.ts'
import { bytes, count } from './screen.ts'

const BAR_WIDTH = 16

/** A pin's progress as one line, from the events of its operation. */
export class PinProgress {
  #operation: Operation | undefined
  /** When the first block was seen, and when the last event came. */
  #since: number | undefined
  #latest = 0

  update(operation: Operation): void {
    this.#operation = operation
    this.#latest = performance.now()
    if (operation.progress?.blocks) this.#since ??= this.#latest
  }

  line(): string {
    const { step, state, progress } = this.#operation ?? {}
    if (!progress) return step ?? state ?? 'waiting'
    const { blocks, bytes: done, total_bytes: total } = progress
    const figures = [
      count(blocks, 'block'),
      total ? `${(done / 1e6).toFixed(1)} of ${bytes(total)}` : bytes(done),
    ]
    const perSecond = this.#bytesPerSecond()
    if (perSecond > 0) figures.push(`${bytes(perSecond)}/s`)
    if (perSecond > 0 && total) figures.push(`${Math.ceil(Math.max(0, total - done) / perSecond)} s left`)
    return [total ? bar(done / total) : (step ?? ''), ...figures].join('  ')
  }

  summary(): string {
    const { progress } = this.#operation ?? {}
    const perSecond = this.#bytesPerSecond()
    const speed = perSecond > 0 ? ` at ${bytes(perSecond)}/s` : ''
    return progress
      ? `${count(progress.blocks, 'block')}, ${bytes(progress.bytes)}${speed}`
      : 'nothing had to be fetched'
  }

  /** From the first block to the latest event, so that a short silence does not lower it. */
  #bytesPerSecond(): number {
    const seconds = this.#since === undefined ? 0 : (this.#latest - this.#since) / 1000
    return seconds > 0 ? (this.#operation?.progress?.bytes ?? 0) / seconds : 0
  }
}

/** `████████░░░░░░░░  50 %` */
export function bar(share: number): string {
  const full = Math.round(Math.min(1, share) * BAR_WIDTH)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(Math.floor(Math.min(1, share) * 100)).padStart(3)} %`
}
