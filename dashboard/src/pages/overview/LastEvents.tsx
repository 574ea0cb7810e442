import { Link } from '@tanstack/react-router'
import { type Change, useChanges } from '../../api/event-store.ts'
import { shorten } from '../../parts/format.ts'
import { Time } from '../../parts/time.tsx'
import { Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useAgents } from '../agents/agents.ts'

const t = texts.overview
const MOST = 14

/** The latest events of the stream. */
export function LastEvents() {
  const changes = useChanges()
  const names = new Map(useAgents().data?.agents.map(({ agentId, name }) => [agentId, name]))
  return (
    <Card title={t.events}>
      {changes.length === 0 && <p className="text-soft text-sm">{t.noEvents}</p>}
      <ul className="divide-y divide-line">
        {inOne(changes, names).map(({ change, name, times }) => (
          <li key={change.id} className="flex items-baseline gap-4 py-2.5 text-sm">
            <p className="min-w-0 break-words">
              <Subject change={change} name={name} />{' '}
              <span className="text-soft">
                {texts.events[change.type] ?? change.type}
                {times > 1 && t.times(times)}
              </span>
            </p>
            <Time at={change.createdAt} className="ml-auto whitespace-nowrap text-soft" />
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** Agent names by id. */
type Names = Map<string, string>

/** The newest events. Consecutive equal events are merged into one with a count. */
function inOne(changes: readonly Change[], names: Names) {
  const told: { change: Change; name: string; times: number }[] = []
  for (const change of changes) {
    const name = nameOf(change, names)
    const last = told.at(-1)
    if (last && last.change.type === change.type && last.name === name) last.times++
    else if (told.length === MOST) break
    else told.push({ change, name, times: 1 })
  }
  return told
}

const textOf = ({ data }: Change, field: string) =>
  typeof data[field] === 'string' ? data[field] : undefined

/** The name of the thing that changed. */
function nameOf(change: Change, names: Names): string {
  const text = (field: string) => textOf(change, field)
  const { type } = change.resource
  const kind = text('kind')
  const thing = texts.things[type] ?? type
  const agent = names.get(text('agentId') ?? '')
  return (
    text('name') ||
    (kind && (texts.operate.operations.kinds[kind] ?? kind)) ||
    text('customDomain') ||
    text('url') ||
    (agent && (thing === texts.things.agent ? agent : t.thingOf(thing, agent))) ||
    [thing, shorten(text('agentId') ?? text('cid') ?? '')].join(' ').trim()
  )
}

/** The name of the resource of an event, with a link to its page. */
function Subject({ change, name }: { change: Change; name: string }) {
  const { type, resource } = change
  const className = 'font-medium hover:text-accent'
  const agentId = textOf(change, 'agentId')
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

const PAGES: Record<
  string,
  `/dashboard/${'files' | 'spending'}` | `/dashboard/operate/${'keys' | 'members' | 'webhooks'}`
> = {
  file: '/dashboard/files',
  group: '/dashboard/files',
  swap: '/dashboard/files',
  key: '/dashboard/operate/keys',
  member: '/dashboard/operate/members',
  invitation: '/dashboard/operate/members',
  webhook: '/dashboard/operate/webhooks',
  budget: '/dashboard/spending',
}
