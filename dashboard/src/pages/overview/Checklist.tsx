import { Link, type LinkProps } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useRights } from '../../api/me.ts'
import { Button, Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import type { Agent } from '../agents/agents.ts'
import { lacksModel } from '../agents/models.ts'
import { ComeBack } from './ComeBack.tsx'
import { type StepName, useFirstSteps } from './first-steps.ts'

const t = texts.overview.steps

/** The first steps of a workspace, until all are done or the user hides them. Then only `ComeBack`, if needed. */
export function Checklist({ agents, files }: { agents: Agent[] | undefined; files: number | undefined }) {
  const { mayWrite, workspaceId } = useRights()
  const key = `berth-first-steps ${workspaceId}`
  const [hidden, setHidden] = useState<string>()
  const isOff = !mayWrite || hidden === key || localStorage.getItem(key) !== null
  const steps = useFirstSteps(!isOff, agents, files)
  const isDone = steps?.every(([, done]) => done) ?? false
  // Remember the completion, so that deleting a conversation, for example, does not bring the steps back.
  useEffect(() => {
    if (isDone) localStorage.setItem(key, 'done')
  }, [isDone, key])
  if (isOff) return <ComeBack />
  if (!steps || isDone) return null
  const hide = () => {
    localStorage.setItem(key, 'hidden')
    setHidden(key)
  }
  const next = steps.find(([, done]) => !done)?.[0]
  return (
    <Card className="mb-4">
      <div className="mb-3 flex items-center justify-between gap-3">
        <div>
          <h2 className="font-semibold">{t.title}</h2>
          <p className="text-soft text-sm">{t.done(steps.filter(([, done]) => done).length, steps.length)}</p>
        </div>
        <Button onClick={hide}>{t.hide}</Button>
      </div>
      <ol aria-label={t.title} className="space-y-1">
        {steps.map(([step, done]) => (
          <Step key={step} step={step} done={done} isNext={step === next} link={linkOf(step, agents ?? [])} />
        ))}
      </ol>
    </Card>
  )
}

function Step({
  step,
  done,
  isNext,
  link,
}: {
  step: StepName
  done: boolean
  isNext: boolean
  link: LinkProps
}) {
  const { title, hint, act } = t[step]
  return (
    <li className={`flex flex-wrap items-start gap-x-3 gap-y-2 rounded-lg p-2 ${isNext ? 'bg-tint' : ''}`}>
      <span
        aria-hidden="true"
        className={`mt-0.5 flex size-5 shrink-0 items-center justify-center rounded-full border text-xs ${done ? 'border-good text-good' : 'border-soft'}`}
      >
        {done && '✓'}
      </span>
      <div className="min-w-0 flex-1 basis-56 text-sm">
        <p className={done ? 'text-soft' : 'font-medium'}>
          {title}
          <span className="sr-only">, {done ? t.isDone : t.isOpen}</span>
        </p>
        {!done && <p className="text-soft">{hint}</p>}
      </div>
      {!done && (
        <Link
          {...link}
          className={`inline-flex min-h-8 items-center rounded-lg px-3 py-1 font-medium text-sm max-md:ml-8 ${isNext ? 'bg-accent text-on-accent hover:opacity-90' : 'border border-line bg-card hover:border-accent'}`}
        >
          {act}
        </Link>
      )}
    </li>
  )
}

/** The page for a step. */
function linkOf(step: StepName, agents: Agent[]): LinkProps {
  const newAgent = { to: '/dashboard/agents/new' } as const
  const running = agents.filter(({ status }) => status === 'running')
  const modelless = running.find(lacksModel)
  const able = running.find((agent) => !lacksModel(agent)) ?? agents[0]
  switch (step) {
    case 'agent':
      return newAgent
    case 'model':
      return modelless
        ? { to: '/dashboard/agents/$agentId/secrets', params: { agentId: modelless.agentId } }
        : newAgent
    case 'answer':
      return able ? { to: '/dashboard/agents/$agentId', params: { agentId: able.agentId } } : newAgent
    case 'file':
      return { to: '/dashboard/files' }
    case 'back':
      return { to: '/dashboard/account' }
  }
}
