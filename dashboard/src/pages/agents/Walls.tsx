import { useHealth } from '../../api/health.ts'
import { texts } from '../../texts.ts'

const t = texts.agents.walls

/** Says how agents run if they are processes, and warns if Berth refuses to create new ones. */
export function Walls() {
  const { processes } = useHealth().data?.parts ?? {}
  if (!processes?.detail) return null
  if (processes.status === 'degraded')
    return (
      <p role="alert" className="mb-3 rounded-lg border border-bad px-3 py-2 text-bad text-sm">
        {t.runs(processes.detail)} {t.closed}
      </p>
    )
  return <p className="mb-3 text-soft text-sm">{t.runs(processes.detail)}</p>
}
