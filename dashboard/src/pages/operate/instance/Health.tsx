import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'
import { Section } from '../../../parts/section.tsx'
import { Loading, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { RequireRole } from '../RequireRole.tsx'

const t = texts.operate.health
/** No events report the health of the parts, so the page polls. */
const EACH_MS = 15_000

/** The parts of the instance, with advice on each unhealthy part. */
export function Health() {
  return (
    <RequireRole who="admins">
      <Parts />
    </RequireRole>
  )
}

function Parts() {
  const { data, error } = useQuery({
    queryKey: ['health', 'instance'],
    queryFn: () => unwrap(api.GET('/v0/admin/health')),
    refetchInterval: EACH_MS,
  })
  const health = data?.data
  return (
    <Section title={t.title} hint={health && t[health.status]}>
      <Problem error={error} />
      {!health && !error && <Loading />}
      {health && (
        <ul aria-label={t.title} className="grid gap-3 md:grid-cols-2">
          {health.parts.map(({ name, status, detail, cause, advice }) => {
            const [word = name, what] = t.parts[name] ?? []
            return (
              <li key={name} className="min-w-0 rounded-xl border border-line bg-card px-4 py-3">
                <div className="flex flex-wrap items-center justify-between gap-x-4">
                  <p className="font-medium text-sm">{word}</p>
                  <State state={status} label={t.states[status]} />
                </div>
                <p className="mt-0.5 break-words text-soft text-sm">
                  {[what, detail].filter(Boolean).join(' · ')}
                </p>
                {cause && <p className="mt-1 break-words font-mono text-xs">{cause}</p>}
                {advice && (
                  <p className="mt-2 break-words rounded-lg bg-tint px-3 py-2 text-sm">
                    <span className="font-medium">{t.todo}:</span> {advice}
                  </p>
                )}
              </li>
            )
          })}
        </ul>
      )}
    </Section>
  )
}
