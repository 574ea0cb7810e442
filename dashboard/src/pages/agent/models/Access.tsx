import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { AskedButton } from '../../../parts/forms.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Card, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { useModelAccess } from '../../spending/budget.ts'

const t = texts.agentModels

type ModelAccess = NonNullable<ReturnType<typeof useModelAccess>['data']>['data']

/** Why calls are refused, in a word; undefined if they pass. */
export function stateOf({ paused, budget, refusal }: ModelAccess): keyof typeof t.states | undefined {
  if (paused) return 'paused'
  if (budget.state === 'spent' || refusal?.code === 'budget_exceeded') return 'spent'
  return refusal ? 'refused' : undefined
}

/** Whether the agent's calls to models pass, why not, and the switch that stops them. */
export function Access({ agentId, access }: { agentId: string; access: ModelAccess }) {
  const { paused, refusal } = access
  const { userId } = useRights()
  const params = { params: { path: { agentId } } }
  const pause = useChange(() => unwrap(api.POST('/v0/agents/{agentId}/model/pause', params)))
  const resume = useChange(() => unwrap(api.POST('/v0/agents/{agentId}/model/resume', params)))
  const state = stateOf(access)
  return (
    <Card className="mb-8">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <div className="min-w-0 flex-1">
          <State state={state ?? 'ok'} label={state ? t.states[state] : t.open} />
          <p className="mt-0.5 break-words text-soft text-sm">
            {paused ? (
              <Time at={paused.at} words={(when) => t.pausedAt(when, paused.by === userId)} />
            ) : (
              !refusal && t.openHint
            )}
          </p>
        </div>
        {paused ? (
          <Button changes look="main" disabled={resume.isPending} onClick={() => resume.mutate()}>
            {t.resume}
          </Button>
        ) : (
          <AskedButton
            label={t.pause}
            title={t.pauseTitle}
            hint={t.pauseHint}
            saving={pause}
            onConfirm={() => pause.mutate()}
          />
        )}
      </div>
      {refusal && (
        <p role="status" className="mt-3 break-words rounded-lg bg-tint px-3 py-2 text-sm">
          {t.reason(refusal.message)}
        </p>
      )}
      <Problem error={resume.error} />
    </Card>
  )
}
