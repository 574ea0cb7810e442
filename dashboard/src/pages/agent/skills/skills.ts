/** Queries and mutations that the skill pages share. */
import { useQuery } from '@tanstack/react-query'
import { AT_ONCE } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'

export const useAttached = (agentId: string) =>
  useQuery({
    queryKey: ['agents', agentId, 'skills'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/skills', { params: { path: { agentId } } })),
  })

const readLibrary = () => unwrap(api.GET('/v0/skills', { params: { query: { limit: 1000 } } }))
export type LibrarySkill = Awaited<ReturnType<typeof readLibrary>>['skills'][number]

/** The skills of the workspace. */
export const useLibrary = () => useQuery({ queryKey: ['skills'], queryFn: readLibrary })

export const useUpdates = (agentId: string) =>
  useQuery({
    queryKey: ['agents', agentId, 'skills', 'updates'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/skills/updates', { params: { path: { agentId } } })),
  })

/** @param skill a CID in the library, or a slug. */
export const attachSkill = (agentId: string, skill: string) =>
  unwrap(
    api.POST('/v0/agents/{agentId}/skills', {
      params: { path: { agentId }, header: AT_ONCE },
      body: { skillCids: [skill] },
    }),
  )

export const detachSkill = (agentId: string, skillId: string) =>
  unwrap(
    api.DELETE('/v0/agents/{agentId}/skills/{skillId}', {
      params: { path: { agentId, skillId }, header: AT_ONCE },
    }),
  )
