/** Derives the completed first steps of a workspace from its contents. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import type { Agent } from '../agents/agents.ts'
import { lacksModel, useModels } from '../agents/models.ts'
import { useWayBack } from './way-back.ts'

export type StepName = 'agent' | 'model' | 'answer' | 'file' | 'back'
/** The most agents that are asked for conversations. */
const MAX_ASKED = 3

/** @returns whether each step is done, in order; undefined until known */
export function useFirstSteps(
  isOn: boolean,
  agents: Agent[] | undefined,
  files: number | undefined,
): [StepName, boolean][] | undefined {
  const models = useModels(isOn)
  const back = useWayBack(isOn)
  const running = agents?.filter(({ status }) => status === 'running') ?? []
  const able = running.filter((agent) => !lacksModel(agent))
  const asked = able.slice(0, MAX_ASKED).map(({ agentId }) => agentId)
  const answered = useQuery({
    queryKey: ['agents', 'answered', asked],
    queryFn: () => hasAnswered(asked),
    enabled: isOn && asked.length > 0,
    retry: false,
  })
  if (!agents || files === undefined || !models || !back || answered.isLoading) return undefined
  return [
    ['agent', agents.length > 0],
    ['model', models.hasDefault || able.length > 0],
    ['answer', answered.data ?? false],
    ['file', files > 0],
    // Without passkeys the dashboard offers nothing for this step.
    ...(back.has || back.passkey ? [['back', back.has] satisfies [StepName, boolean]] : []),
  ]
}

/** True if one of the agents has a conversation. An unreachable engine counts as having none. */
async function hasAnswered(agentIds: string[]): Promise<boolean> {
  const all = await Promise.allSettled(
    agentIds.map((agentId) =>
      unwrap(api.GET('/v0/agents/{agentId}/conversations', { params: { path: { agentId } } })),
    ),
  )
  return all.some((one) => one.status === 'fulfilled' && one.value.conversations.length > 0)
}
