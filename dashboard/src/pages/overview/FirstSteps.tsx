import { Link } from '@tanstack/react-router'
import { useRights } from '../../api/me.ts'
import { Icon } from '../../parts/icon.tsx'
import { texts } from '../../texts.ts'

const t = texts.overview
const STEPS = [
  ['/dashboard/agents', 'agents', t.beginAgent],
  ['/dashboard/files', 'files', t.beginFile],
  ['/dashboard/operate/keys', 'operate', t.beginKey],
] as const

/** For a workspace that has nothing yet. */
export function FirstSteps() {
  if (!useRights().mayWrite) return null
  return (
    <section aria-label={t.begin} className="mb-4">
      <h2 className="mb-3 font-medium text-soft text-sm">{t.begin}</h2>
      <div className="grid gap-4 md:grid-cols-3">
        {STEPS.map(([to, icon, [title, hint]]) => (
          <Link
            key={to}
            to={to}
            className="flex gap-4 rounded-xl border border-line bg-card p-5 hover:border-accent"
          >
            <span className="grid size-10 shrink-0 place-items-center rounded-lg bg-tint text-accent">
              <Icon name={icon} />
            </span>
            <span>
              <span className="font-semibold">{title}</span>
              <span className="mt-1 block text-soft text-sm">{hint}</span>
            </span>
          </Link>
        ))}
      </div>
    </section>
  )
}
