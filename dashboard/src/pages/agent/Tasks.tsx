import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { Rows, Section } from '../../parts/section.tsx'
import { Button, Empty, Loading } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { EngineAway } from './EngineAway.tsx'
import { TaskForm } from './tasks/TaskForm.tsx'
import { TaskRow } from './tasks/TaskRow.tsx'
import { readTasks, type Task } from './tasks/tasks.ts'

const t = texts.tasks
/** The engine does not announce the end of a run, so the page polls, and does so more often during a run. */
const RUNNING_MS = 3000
const QUIET_MS = 30_000

/** The scheduled tasks of an agent. */
export function Tasks() {
  const { agentId, agent } = useAgent()
  const [edited, setEdited] = useState<Task | 'new'>()
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'tasks'],
    queryFn: () => readTasks(agentId),
    retry: false,
    refetchInterval: ({ state }) => (state.data?.some(({ isRunning }) => isRunning) ? RUNNING_MS : QUIET_MS),
  })
  const create = (
    <Button changes look="main" onClick={() => setEdited('new')}>
      {t.create}
    </Button>
  )
  if (!agent) return null
  return (
    <Section title={t.title} hint={t.hint} actions={data && data.length > 0 && create}>
      <EngineAway error={error} agent={agent} />
      {!data && !error && <Loading />}
      {data?.length === 0 && (
        <Empty title={t.empty} hint={t.emptyHint}>
          {create}
        </Empty>
      )}
      {!error && data && data.length > 0 && (
        <Rows label={t.title}>
          {data.map((task) => (
            <TaskRow key={task.id} agentId={agentId} task={task} onEdit={() => setEdited(task)} />
          ))}
        </Rows>
      )}
      {edited && (
        <TaskForm
          agentId={agentId}
          {...(edited !== 'new' && { task: edited })}
          onClose={() => setEdited(undefined)}
        />
      )}
    </Section>
  )
}
