/** Secrets as the API shows them, and the fields of a form for their hosts. */
import { api, unwrap } from '../../../api/client.ts'
import { texts } from '../../../texts.ts'

export const WAYS = ['bearer', 'basic', 'header', 'query'] as const
type Way = (typeof WAYS)[number]
type Via = { as: 'bearer' | 'basic' } | { as: 'header' | 'query'; name: string }

export interface Secret {
  id: string
  name: string
  type: 'secret' | 'variable'
  value?: string | null | undefined
  hosts: string[] | null
  via: Via | null
  readable: boolean
  updatedAt: string
  agents: { agentId: string; name: string }[]
}

export const attach = (agentId: string, id: string) =>
  unwrap(
    api.POST('/v0/agents/{agentId}/secrets', {
      params: { path: { agentId } },
      body: { secretIds: [id] },
    }),
  )

export function viaTextOf(via: Via): string {
  const { travels } = texts.secrets
  return 'name' in via ? travels[via.as](via.name) : travels[via.as]
}

/** The hosts while they are edited: a text with a host per line. */
export interface HostDraft {
  hosts: string
  as: Way
  name: string
}

export const hostDraftOf = ({ hosts, via }: Pick<Secret, 'hosts' | 'via'>): HostDraft => ({
  hosts: hosts?.join('\n') ?? '',
  as: via?.as ?? 'bearer',
  name: via && 'name' in via ? via.name : '',
})

export const NO_HOSTS = hostDraftOf({ hosts: null, via: null })

/** The fields of a request. */
export function hostFieldsOf({ hosts: text, as, name }: HostDraft): { hosts: string[]; via?: Via } {
  const hosts = text.split(/[\s,]+/).filter((host) => host !== '')
  if (hosts.length === 0) return { hosts }
  return { hosts, via: as === 'header' || as === 'query' ? { as, name: name.trim() } : { as } }
}
