import { useNavigate, useSearch } from '@tanstack/react-router'
import { useAgent } from '../../api/agent.ts'
import { Choice } from '../../parts/choice.tsx'
import { texts } from '../../texts.ts'
import { Attached } from './skills/Attached.tsx'
import { Hub } from './skills/Hub.tsx'
import { Library } from './skills/Library.tsx'

const t = texts.skills
type View = keyof typeof t.views

/** The skills of an agent, the workspace's library, and the skills that can be installed. */
export function Skills() {
  const { agentId } = useAgent()
  const { view = 'attached' } = useSearch({ from: '/shell/dashboard/agents/$agentId/skills' })
  const go = useNavigate({ from: '/dashboard/agents/$agentId/skills' })
  const setView = (view: View) => void go({ search: view === 'attached' ? {} : { view }, replace: true })
  return (
    <>
      <div className="mb-5">
        <Choice
          label={t.title}
          value={view}
          onChange={setView}
          options={(Object.keys(t.views) as View[]).map((one) => [one, t.views[one]] as const)}
        />
      </div>
      {view === 'attached' && <Attached agentId={agentId} onAdd={() => setView('hub')} />}
      {view === 'library' && <Library agentId={agentId} />}
      {view === 'hub' && <Hub agentId={agentId} />}
    </>
  )
}
