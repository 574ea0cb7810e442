import { Link } from '@tanstack/react-router'
import { useRights } from '../../api/me.ts'
import { Icon } from '../../parts/icon.tsx'
import { texts } from '../../texts.ts'

const t = texts.overview
const STEPS = [
  [{ to: '/dashboard/agents/new' }, 'agents', t.beginAgent],
  [{ to: '/dashboard/files' }, 'files', t.beginFile],
  [{ to: '/dashboard/operate/keys', search: { do: 'new' } }, 'operate', t.beginKey],
] as const

/** For a workspace that has nothing yet. */
export function FirstSteps() {
  if (!useRights().mayWrite) return null
  return (
    <section aria-label={t.begin} className="mb-4">
      <h2 className="mb-3 font-medium text-soft text-sm">{t.begin}</h2>
      <div className="grid gap-4 md:grid-cols-3">
        {STEPS.map(([link, icon, [title, hint]]) => (
          <Link
            key={link.to}
            {...link}
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
