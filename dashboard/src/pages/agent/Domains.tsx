import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { api, unwrap } from '../../api/client.ts'
import { Rows, Section } from '../../parts/section.tsx'
import { Button, Empty, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { DomainRow } from './domains/DomainRow.tsx'
import { AddDomain } from './domains/dialogs.tsx'
import { PortRoutes } from './domains/PortRoutes.tsx'

const t = texts.domains

/** The domains and paths that lead to an agent's own pages. */
export function Domains() {
  const { agentId } = useAgent()
  const [isNew, setNew] = useState(false)
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'domains'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/domains', { params: { path: { agentId } } })),
  })
  const create = (
    <Button changes look="main" onClick={() => setNew(true)}>
      {t.create}
    </Button>
  )
  return (
    <>
      <Section title={t.title} hint={t.hint} actions={data && data.domains.length > 0 && create}>
        <Problem error={error} />
        {data?.domains.length === 0 && (
          <Empty title={t.empty} hint={t.emptyHint}>
            {create}
          </Empty>
        )}
        {data && data.domains.length > 0 && (
          <Rows label={t.title}>
            {data.domains.map((domain) => (
              <DomainRow key={domain.id} domain={domain} />
            ))}
          </Rows>
        )}
      </Section>
      <PortRoutes agentId={agentId} />
      {isNew && <AddDomain agentId={agentId} onClose={() => setNew(false)} />}
    </>
  )
}
