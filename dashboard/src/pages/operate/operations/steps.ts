import { useEffect, useState } from 'react'
import { readEvents } from '../../../api/event-stream.ts'
import { texts } from '../../../texts.ts'
import { isOver, type Operation } from './operations.ts'

const t = texts.operate.operations
const MOST = 200

export interface Step {
  id: string
  at: string
  words: string
}

/** The steps of an operation since its start, read from its events. Empty if Berth no longer keeps the events. */
export function useSteps({ id, created_at }: Operation): Step[] {
  const [steps, setSteps] = useState<Step[]>([])
  useEffect(() => {
    const stopped = new AbortController()
    setSteps([])
    void follow(id, created_at, stopped.signal, (step) =>
      setSteps((known) => (known.at(-1)?.words === step.words ? known : [...known, step].slice(-MOST))),
    ).catch(() => {})
    return () => stopped.abort()
  }, [id, created_at])
  return steps
}

async function follow(
  id: string,
  createdAt: string,
  signal: AbortSignal,
  onStep: (step: Step) => void,
): Promise<void> {
  const query = { resource: `operation:${id}`, type: 'operation.progress', from: createdAt }
  for await (const { change } of readEvents(signal, { query })) {
    if (!change) continue
    const { state, step } = change.data as Pick<Operation, 'state' | 'step'>
    const words = state === 'running' && step ? (t.stepWords[step] ?? step) : (t.states[state] ?? state)
    onStep({ id: change.id, at: change.createdAt, words })
    if (isOver({ state } as Operation)) return
  }
}
