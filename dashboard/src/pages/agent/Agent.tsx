import { Link, Outlet } from '@tanstack/react-router'
import { useAgent } from '../../api/agent.ts'
import { Tabs } from '../../parts/tabs.tsx'
import { Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AgentHead } from './AgentHead.tsx'
import { StartNow } from './StartNow.tsx'

const { tabs } = texts.agent

/** The page of an agent: its name and state, and the tabs of its pages. */
export function Agent() {
  const { agentId, agent, error } = useAgent()
  return (
    <>
      <Link to="/dashboard/agents" className="mb-1 inline-block text-soft text-sm hover:text-ink">
        ← {texts.agents.title}
      </Link>
      <AgentHead agentId={agentId} agent={agent} />
      <Problem error={error} />
      {agent && <StartNow agent={agent} />}
      {(agent || !error) && <AgentTabs agentId={agentId} />}
      {agent && <Outlet />}
    </>
  )
}

function AgentTabs({ agentId }: { agentId: string }) {
  const params = { agentId }
  return (
    <Tabs
      label={agentId}
      tabs={[
        { to: '/dashboard/agents/$agentId', params, label: tabs.chat },
        { to: '/dashboard/agents/$agentId/console', params, label: tabs.console },
        { to: '/dashboard/agents/$agentId/files', params, label: tabs.files },
        { to: '/dashboard/agents/$agentId/snapshots', params, label: tabs.snapshots },
        { to: '/dashboard/agents/$agentId/tasks', params, label: tabs.tasks },
        { to: '/dashboard/agents/$agentId/skills', params, label: tabs.skills },
        { to: '/dashboard/agents/$agentId/models', params, label: tabs.models },
        { to: '/dashboard/agents/$agentId/egress', params, label: tabs.egress },
        { to: '/dashboard/agents/$agentId/secrets', params, label: tabs.secrets },
        { to: '/dashboard/agents/$agentId/channels', params, label: tabs.channels },
        { to: '/dashboard/agents/$agentId/devices', params, label: tabs.devices },
        { to: '/dashboard/agents/$agentId/domains', params, label: tabs.domains },
        { to: '/dashboard/agents/$agentId/config', params, label: tabs.config },
        { to: '/dashboard/agents/$agentId/logs', params, label: tabs.logs },
        { to: '/dashboard/agents/$agentId/usage', params, label: tabs.usage },
        { to: '/dashboard/agents/$agentId/settings', params, label: tabs.settings },
      ]}
    />
  )
}
