import { Link } from '@tanstack/react-router'
import { useAgent } from '../../api/agent.ts'
import { AskedButton } from '../../parts/forms.tsx'
import { Note, Section } from '../../parts/section.tsx'
import { Loading, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { PolicyFields } from '../egress/PolicyFields.tsx'
import { useAgentPolicy, useEditing } from '../egress/policy.ts'
import { SaveBar } from '../egress/SaveBar.tsx'
import { Hosts } from './egress/Hosts.tsx'

const t = texts.egress
type AgentPolicy = NonNullable<ReturnType<typeof useAgentPolicy>['data']>['data']

/** Where an agent may connect to, and where it does. */
export function Egress() {
  const { agentId } = useAgent()
  const { data, error } = useAgentPolicy(agentId)
  return (
    <>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && <Policy key={agentId} agentId={agentId} stored={data.data} />}
    </>
  )
}

function Policy({ agentId, stored }: { agentId: string; stored: AgentPolicy }) {
  const { source, enforced } = stored
  const editing = useEditing(agentId, stored)
  const isOwn = source === 'agent'
  return (
    <>
      {!enforced && <Note>{t.advisory}</Note>}
      <Section title={t.title} hint={t.hint}>
        <PolicyFields editing={editing}>
          <div className="flex flex-wrap items-center justify-between gap-3">
            <p className="min-w-0 flex-1 basis-60 text-sm">
              {t.sources[source]}{' '}
              <Link to="/dashboard/operate/egress" className="text-accent underline">
                {t.toWorkspace}
              </Link>
            </p>
            {isOwn && (
              <AskedButton
                label={t.follow}
                title={t.followTitle}
                hint={t.followHint}
                saving={editing.remove}
                onConfirm={() => editing.remove.mutate()}
              />
            )}
          </div>
        </PolicyFields>
      </Section>
      <Hosts agentId={agentId} editing={editing} isCounted={enforced} />
      <SaveBar editing={editing} hint={isOwn ? t.unsaved : t.unsavedOwn} />
    </>
  )
}
