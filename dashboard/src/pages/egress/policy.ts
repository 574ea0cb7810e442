/** Egress policies of the workspace and its agents: the queries, and changes of them. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { type Draft, draftOf, lineOf, type Policy, policyOf } from './rules.ts'

/** No event reports changes of policies, or counts. */
const EACH_MS = 15_000
const PAGE = 1000

/** The policy of agents without one of their own. */
export const useWorkspacePolicy = () =>
  useQuery({
    queryKey: ['egress', 'workspace'],
    queryFn: () => unwrap(api.GET('/v0/egress')),
    refetchInterval: EACH_MS,
  })

/** The policy that applies to an agent. */
export const useAgentPolicy = (agentId: string) =>
  useQuery({
    queryKey: ['egress', agentId],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/egress', { params: { path: { agentId } } })),
    refetchInterval: EACH_MS,
  })

/** The hosts that an agent asked for in the last seven days, by name. */
export const useHosts = (agentId: string) =>
  useQuery({
    queryKey: ['egress', agentId, 'hosts'],
    queryFn: () => readHosts(agentId),
    refetchInterval: EACH_MS,
  })
export type Host = Awaited<ReturnType<typeof readHosts>>[number]

/** All pages. */
async function readHosts(agentId: string) {
  const read = async (pageToken: string) => {
    const query = { limit: PAGE, ...(pageToken && { pageToken }) }
    const params = { path: { agentId }, query }
    return (await unwrap(api.GET('/v0/agents/{agentId}/egress/hosts', { params }))).data
  }
  let page = await read('')
  const hosts = [...page.hosts]
  while (page.next_page_token) {
    page = await read(page.next_page_token)
    hosts.push(...page.hosts)
  }
  return hosts
}

/**
 * A policy while it is edited, its save and its removal.
 * @param agentId undefined for the workspace's policy.
 * @param stored the policy that applies.
 */
export function useEditing(agentId: string | undefined, stored: Policy) {
  const queries = useQueryClient()
  const [kept, setDraft] = useState<Draft>()
  const draft = kept ?? draftOf(stored)
  const policy = policyOf(draft)
  const isChanged = JSON.stringify(policy) !== JSON.stringify(policyOf(draftOf(stored)))
  const path = agentId ? { params: { path: { agentId } } } : undefined
  const discard = () => setDraft(undefined)
  // The answer replaces the shown policy before the draft goes, so the former one does not flash up.
  const keep = (body: object) => queries.setQueryData(['egress', agentId ?? 'workspace'], body)
  const save = useChange(
    async ({ sent, body }: { sent: Draft | undefined; body: Policy }) => {
      const saved = path
        ? api.PUT('/v0/agents/{agentId}/egress', { ...path, body })
        : api.PUT('/v0/egress', { body })
      keep(await unwrap<object>(saved))
      return sent
    },
    // Keep input that was typed during the save.
    (sent) => setDraft((now) => (now === sent ? undefined : now)),
  )
  const remove = useChange(async () => {
    const removed = path ? api.DELETE('/v0/agents/{agentId}/egress', path) : api.DELETE('/v0/egress')
    keep(await unwrap<object>(removed))
  }, discard)
  return {
    draft,
    policy,
    isChanged,
    change: setDraft,
    discard,
    remove,
    save: {
      isPending: save.isPending,
      isSuccess: save.isSuccess,
      error: save.error && nameRule(save.error, save.variables.body),
      send: () => save.mutate({ sent: kept, body: policy }),
    },
  }
}
export type Editing = ReturnType<typeof useEditing>

/** The error, with the text of a refused rule instead of its place in the list. */
function nameRule(error: Error, policy: Policy): Error {
  const message = error.message.replace(
    /\b(allow|deny)\[(\d+)\]/g,
    (place, list: 'allow' | 'deny', i: string) => lineOf(policy[list][Number(i)] ?? place),
  )
  return new Error(message)
}
