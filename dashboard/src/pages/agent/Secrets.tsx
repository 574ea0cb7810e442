import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { api, unwrap } from '../../api/client.ts'
import { Search } from '../../parts/choice.tsx'
import { Rows, Section } from '../../parts/section.tsx'
import { Button, Empty, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { RestartNote } from './RestartNote.tsx'
import { AddSecret } from './secrets/dialogs.tsx'
import { SecretRow } from './secrets/SecretRow.tsx'

const t = texts.secrets
/** Above this number of secrets, the page offers a search. */
const SEARCHED_FROM = 8

/** The secrets of an agent, and the other secrets of the workspace. */
export function Secrets() {
  const { agentId, agent } = useAgent()
  const [isNew, setNew] = useState(false)
  const [search, setSearch] = useState('')
  const all = useQuery({ queryKey: ['secrets'], queryFn: () => unwrap(api.GET('/v0/secrets')) })
  const own = useQuery({
    queryKey: ['agents', agentId, 'secrets'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/secrets', { params: { path: { agentId } } })),
  })
  if (!agent) return null
  const attached = new Map(own.data?.secrets.map((secret) => [secret.id, secret]))
  const found = (all.data?.secrets ?? []).filter(({ name }) =>
    name.toLowerCase().includes(search.toLowerCase()),
  )
  const here = found.filter(({ id }) => attached.has(id))
  const others = found.filter(({ id }) => !attached.has(id))
  const isStale = agent.status === 'running' && own.data?.secrets.some(({ synced }) => !synced)
  const create = (
    <Button changes look="main" onClick={() => setNew(true)}>
      {t.create}
    </Button>
  )
  return (
    <>
      <Problem error={all.error ?? own.error} />
      {isStale && <RestartNote agentId={agentId}>{t.stale}</RestartNote>}
      {all.data && all.data.secrets.length > SEARCHED_FROM && (
        <div className="mb-4 flex">
          <Search label={t.search} value={search} onChange={setSearch} />
        </div>
      )}
      <Section title={t.here} hint={t.hint} actions={all.data && all.data.secrets.length > 0 && create}>
        {all.data?.secrets.length === 0 && (
          <Empty title={t.empty} hint={t.emptyHint}>
            {create}
          </Empty>
        )}
        {all.data && all.data.secrets.length > 0 && here.length === 0 && (
          <Empty title={search ? t.nothing : t.noneHere} />
        )}
        {here.length > 0 && (
          <Rows label={t.here}>
            {here.map((secret) => (
              <SecretRow
                key={secret.id}
                agentId={agentId}
                secret={secret}
                attached={attached.get(secret.id)}
              />
            ))}
          </Rows>
        )}
      </Section>
      {others.length > 0 && (
        <Section
          title={t.others}
          hint={t.countOf(all.data?.secrets.length ?? 0, all.data?.secretLimit ?? null)}
        >
          <Rows label={t.others}>
            {others.map((secret) => (
              <SecretRow key={secret.id} agentId={agentId} secret={secret} />
            ))}
          </Rows>
        </Section>
      )}
      {isNew && <AddSecret agentId={agentId} onClose={() => setNew(false)} />}
    </>
  )
}
