import { Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useStart } from './agents.ts'

/** The stages of a start that people see. Each covers one or more steps of the operation. */
const STAGES = ['engine', 'sandbox', 'files', 'gateway', 'finish'] as const
const STAGE_OF: Record<string, (typeof STAGES)[number]> = {
  image: 'engine',
  volume: 'sandbox',
  container: 'sandbox',
  workspace: 'files',
  skills: 'files',
  secrets: 'files',
  gateway: 'gateway',
  commit: 'finish',
  manifest: 'finish',
  scripts: 'finish',
}

/** The label of the stage that a step belongs to. */
export const stageOf = (step: string): string | undefined => {
  const stage = STAGE_OF[step]
  return stage && texts.agents.stages[stage]
}

const MARKS = { done: '✓', now: '…', next: '', failed: '✗' }
const LOOKS = {
  done: 'text-good',
  now: 'font-medium text-ink',
  next: 'text-soft',
  failed: 'font-medium text-bad',
}

/** The progress of an agent's start. */
export function Progress({
  agentId,
  isUp,
  isWide = false,
}: {
  agentId: string
  isUp: boolean
  /** Shows the stages in a row if there is room. */
  isWide?: boolean
}) {
  const { data: operation, error } = useStart(agentId)
  const at = STAGES.indexOf(STAGE_OF[operation?.step ?? ''] ?? 'engine')
  const isOver = isUp || operation?.state === 'succeeded'
  const hasFailed = operation?.state === 'failed'
  const lookOf = (index: number) => {
    if (isOver || index < at) return 'done'
    if (index > at || !operation) return 'next'
    return hasFailed ? 'failed' : 'now'
  }
  return (
    <>
      <ol
        aria-label={texts.agents.progress}
        aria-live="polite"
        className={`flex flex-col gap-2.5 ${isWide ? 'lg:flex-row lg:flex-wrap lg:gap-x-6' : ''}`}
      >
        {STAGES.map((stage, index) => {
          const look = lookOf(index)
          return (
            <li key={stage} className={`flex items-center gap-3 text-sm ${LOOKS[look]}`}>
              <span
                aria-hidden="true"
                className={`flex size-6 shrink-0 items-center justify-center rounded-full border border-current text-xs ${look === 'now' ? 'motion-safe:animate-pulse' : ''}`}
              >
                {MARKS[look]}
              </span>
              {texts.agents.stages[stage]}
              <span className="sr-only">{texts.agents.stageStates[look]}</span>
            </li>
          )
        })}
      </ol>
      <Problem error={error} />
    </>
  )
}
