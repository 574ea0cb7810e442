import type { PinProgress } from './port.ts'

const INTERVAL_MS = 250

/** Passes on the first report, then at most one each quarter of a second; `flush` passes on what was held back. */
export function throttleProgress(onProgress: ((progress: PinProgress) => void) | undefined) {
  let held: PinProgress | null = null
  let lastAt = 0
  const pass = (progress: PinProgress) => {
    held = null
    lastAt = Date.now()
    onProgress?.(progress)
  }
  return {
    report(progress: PinProgress): void {
      if (Date.now() - lastAt >= INTERVAL_MS) pass(progress)
      else held = progress
    },
    flush(): void {
      if (held) pass(held)
    },
  }
}
