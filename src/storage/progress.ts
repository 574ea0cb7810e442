import type { PinProgress } from './port.ts'

const INTERVAL_MS = 250

/**
 * Passes on the first report of each phase, then at most one every quarter of a second; `flush` passes on a report that
 * was held back.
 */
export function throttleProgress(onProgress: ((progress: PinProgress) => void) | undefined) {
  let held: PinProgress | null = null
  let lastAt = 0
  let phase: PinProgress['phase'] | null = null
  const pass = (progress: PinProgress) => {
    held = null
    lastAt = Date.now()
    phase = progress.phase
    onProgress?.(progress)
  }
  return {
    report(progress: PinProgress): void {
      if (progress.phase !== phase || Date.now() - lastAt >= INTERVAL_MS) pass(progress)
      else held = progress
    },
    flush(): void {
      if (held) pass(held)
    },
  }
}
