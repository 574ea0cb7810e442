import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Menu, MenuItem } from '../../../parts/menu.tsx'
import { useMayChange } from '../../../parts/rights.tsx'
import { Row } from '../../../parts/section.tsx'
import { Switch } from '../../../parts/switch.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { inWords, moment } from './schedule.ts'
import { readRuns, type Task } from './tasks.ts'

const t = texts.tasks
const MS = 1000

export function TaskRow({ agentId, task, onEdit }: { agentId: string; task: Task; onEdit: () => void }) {
  const { id: jobId, name, enabled, schedule, message, nextRunAtMs, lastRunAtMs } = task
  const [isGoing, setGoing] = useState(false)
  const [isOpen, setOpen] = useState(false)
  const mayChange = useMayChange()
  const params = { path: { agentId, jobId } }
  const run = useChange(() => unwrap(api.POST('/v0/agents/{agentId}/tasks/{jobId}/run', { params })))
  const toggle = useChange((enabled: boolean) =>
    unwrap(api.POST('/v0/agents/{agentId}/tasks/{jobId}/toggle', { params, body: { enabled } })),
  )
  return (
    <Row
      actions={
        <>
          <Button changes disabled={run.isPending || task.isRunning} onClick={() => run.mutate()}>
            {task.isRunning ? t.running : t.run}
          </Button>
          <Switch
            label={t.switch(name)}
            checked={enabled}
            disabled={toggle.isPending || !mayChange}
            onChange={(isOn) => toggle.mutate(isOn)}
          />
          <Menu label={texts.agents.more(name)}>
            <MenuItem changes onSelect={onEdit}>
              {t.edit}
            </MenuItem>
            <MenuItem onSelect={() => setOpen(!isOpen)}>{isOpen ? t.hideRuns : t.runs}</MenuItem>
            <MenuItem changes look="danger" onSelect={() => setGoing(true)}>
              {t.remove}
            </MenuItem>
          </Menu>
        </>
      }
    >
      <h3 className={`break-words font-medium text-sm ${enabled ? '' : 'text-soft'}`}>{name}</h3>
      <p className="mt-0.5 text-sm">
        {schedule ? inWords(schedule) : t.unknown}
        {nextRunAtMs && (
          <span className="text-soft">
            {' · '}
            <Time at={nextRunAtMs} words={t.next} />
          </span>
        )}
        {!enabled && <span className="text-soft"> · {t.off}</span>}
      </p>
      <p className="mt-1 line-clamp-2 break-words text-soft text-sm">{task.description || message}</p>
      {lastRunAtMs && (
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="mt-1.5 inline-flex flex-wrap items-center gap-2 text-soft text-sm hover:text-ink"
        >
          <State
            state={toneOf(task.lastStatus)}
            label={t.results[task.lastStatus ?? ''] ?? task.lastStatus}
          />
          <Time at={lastRunAtMs} />
        </button>
      )}
      <Problem error={run.error ?? toggle.error} />
      {isOpen && <Runs agentId={agentId} task={task} />}
      {isGoing && <RemoveTask agentId={agentId} task={task} onClose={() => setGoing(false)} />}
    </Row>
  )
}

const toneOf = (status: string | undefined) => (status === 'error' ? 'failed' : (status ?? ''))

/** The last runs of a task, with the result of each. */
function Runs({ agentId, task }: { agentId: string; task: Task }) {
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'tasks', task.id, 'runs', task.lastRunAtMs],
    queryFn: () => readRuns(agentId, task.id),
  })
  return (
    <div className="mt-3 rounded-lg border border-line bg-page">
      <Problem error={error} />
      {data?.length === 0 && <p className="p-3 text-soft text-sm">{t.noRuns}</p>}
      <ol aria-label={t.runs} className="divide-y divide-line">
        {data?.map(({ at, status, summary, durationMs }) => (
          <li key={at} className="px-3 py-2 text-sm">
            <div className="flex flex-wrap items-center gap-x-3">
              <State state={toneOf(status)} label={t.results[status] ?? status} />
              <span className="text-soft">{moment(at)}</span>
              {durationMs !== undefined && (
                <span className="text-soft tabular-nums">{t.took((durationMs / MS).toFixed(1))}</span>
              )}
            </div>
            {summary && <p className="mt-1 whitespace-pre-line break-words">{summary}</p>}
          </li>
        ))}
      </ol>
    </div>
  )
}

function RemoveTask({ agentId, task, onClose }: { agentId: string; task: Task; onClose: () => void }) {
  const params = { path: { agentId, jobId: task.id } }
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/agents/{agentId}/tasks/{jobId}', { params })),
    onClose,
  )
  return (
    <FormDialog
      title={t.removeTitle(task.name)}
      hint={t.removeHint}
      submit={t.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
