import { Link } from '@tanstack/react-router'
import { type Change, useChanges } from '../../api/told.ts'
import { ago, shorten } from '../../parts/format.ts'
import { Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const t = texts.overview
const MOST = 12

/** The latest events of the stream. */
export function LastEvents() {
  const changes = useChanges()
  return (
    <Card title={t.events}>
      {changes.length === 0 && <p className="text-soft text-sm">{t.noEvents}</p>}
      <ul className="divide-y divide-line">
        {changes.slice(0, MOST).map((change) => (
          <li key={change.id} className="flex items-baseline gap-4 py-2.5 text-sm">
            <p className="min-w-0 break-words">
              <Subject change={change} />{' '}
              <span className="text-soft">{texts.events[change.type] ?? change.type}</span>
            </p>
            <time className="ml-auto whitespace-nowrap text-soft" dateTime={change.createdAt}>
              {ago(change.createdAt)}
            </time>
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** The name of the thing that changed, with a link to its page. */
function Subject({ change: { type, resource, data } }: { change: Change }) {
  const text = (field: string) => (typeof data[field] === 'string' ? data[field] : undefined)
  const kind = text('kind')
  const name =
    text('name') ||
    (kind && (texts.operate.operations.kinds[kind] ?? kind)) ||
    text('customDomain') ||
    text('url') ||
    [texts.things[resource.type] ?? resource.type, shorten(text('agentId') ?? text('cid') ?? '')]
      .join(' ')
      .trim()
  const className = 'font-medium hover:text-accent'
  const agentId = text('agentId')
  if (resource.type === 'operation')
    return (
      <Link
        to="/dashboard/operate/operations/$operationId"
        params={{ operationId: resource.id }}
        className={className}
      >
        {name}
      </Link>
    )
  if (agentId && type !== 'agent.deleted')
    return (
      <Link to="/dashboard/agents/$agentId" params={{ agentId }} className={className}>
        {name}
      </Link>
    )
  const to = PAGES[resource.type]
  if (!to || type.endsWith('.deleted')) return <span className="font-medium">{name}</span>
  return (
    <Link to={to} className={className}>
      {name}
    </Link>
  )
}

const PAGES: Record<string, '/dashboard/files' | `/dashboard/operate/${'keys' | 'members' | 'webhooks'}`> = {
  file: '/dashboard/files',
  group: '/dashboard/files',
  swap: '/dashboard/files',
  key: '/dashboard/operate/keys',
  member: '/dashboard/operate/members',
  invitation: '/dashboard/operate/members',
  webhook: '/dashboard/operate/webhooks',
}
