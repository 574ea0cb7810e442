import { bytes } from '../../parts/format.ts'
import { texts } from '../../texts.ts'
import type { Used } from './agents.ts'

/** Shares of the limit at which the memory counts as nearly full and as full. */
const NEAR = 0.8
const FULL = 0.95

/** The memory that an agent uses, and its limit if it has one. */
export function Memory({ used, className }: { used: Used | undefined; className: string }) {
  if (!used) return <span className={className} />
  const { memoryBytes, memoryLimitBytes } = used
  const share = memoryLimitBytes ? Math.min(memoryBytes / memoryLimitBytes, 1) : undefined
  const told = memoryLimitBytes
    ? texts.agents.memoryOf(bytes(memoryBytes), bytes(memoryLimitBytes))
    : bytes(memoryBytes)
  return (
    <div className={`min-w-0 text-sm tabular-nums ${className}`} title={told}>
      <p className="truncate">
        {bytes(memoryBytes)}
        {memoryLimitBytes && <span className="text-soft text-xs"> / {bytes(memoryLimitBytes)}</span>}
      </p>
      {share !== undefined && (
        <div aria-hidden="true" className="mt-1 h-1 overflow-hidden rounded-full bg-line max-md:hidden">
          <div className={`h-full rounded-full ${toneOf(share)}`} style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </div>
  )
}

function toneOf(share: number): string {
  if (share >= FULL) return 'bg-bad'
  return share >= NEAR ? 'bg-busy' : 'bg-accent'
}
