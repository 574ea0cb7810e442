/** ⌘K: finds pages, agents, files and actions by typing. Loaded when it is opened. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { type ReactNode, useDeferredValue, useEffect, useRef, useState } from 'react'
import { api, unwrap } from '../api/client.ts'
import { useRights } from '../api/me.ts'
import { useWorkspaces } from '../api/workspaces.ts'
import { useAgents } from '../pages/agents/agents.ts'
import { operateTabs } from '../pages/operate/tabs.ts'
import { cidIn } from '../parts/cid.ts'
import { shorten } from '../parts/format.ts'
import { texts } from '../texts.ts'

const t = texts.shell
const MOST = 6
const ITEM =
  'flex min-h-10 cursor-pointer items-center justify-between gap-4 rounded-lg px-3 py-2 data-[selected=true]:bg-tint data-[selected=true]:text-accent'
const GROUP =
  '[&_[cmdk-group-heading]]:px-3 [&_[cmdk-group-heading]]:pt-3 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-soft [&_[cmdk-group-heading]]:text-xs'

export function Palette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
    // Otherwise the dialog would focus the frame of the list, which comes first.
    input.current?.focus()
  }, [])
  const [typed, setTyped] = useState('')
  const navigate = useNavigate()
  const rights = useRights()
  const go = (href: string) => {
    dialog.current?.close()
    void navigate({ href })
  }
  const pages: [string, string][] = [
    [texts.nav.overview, '/dashboard'],
    [texts.nav.files, '/dashboard/files'],
    [texts.nav.agents, '/dashboard/agents'],
    [texts.nav.spending, '/dashboard/spending'],
    ...operateTabs(rights).map(({ to, label }): [string, string] => [`${texts.nav.operate}: ${label}`, to]),
    [texts.nav.account, '/dashboard/account'],
  ]
  const { workspaces, current, move } = useWorkspaces()
  const actions: [string, string][] = rights.mayWrite
    ? [
        [texts.agents.create, '/dashboard/agents/new'],
        [t.uploadFiles, '/dashboard/files'],
        [texts.files.pins.add, '/dashboard/files/pins'],
        [texts.operate.keys.create, '/dashboard/operate/keys?do=new'],
      ]
    : []
  return (
    <dialog
      ref={dialog}
      aria-label={t.palette}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
      onKeyDown={(event) => event.key === 'Escape' && dialog.current?.close()}
      className="mx-auto mt-[12vh] w-[calc(100%-2rem)] max-w-xl rounded-2xl border border-line bg-card text-ink shadow-2xl"
    >
      <Command label={t.palette} loop>
        <Command.Input
          ref={input}
          value={typed}
          // The list compares spaces too, and a pasted CID often includes some.
          onValueChange={(text) => setTyped(cidIn(text) ? text.trim() : text)}
          placeholder={t.paletteHint}
          className="w-full border-line border-b bg-transparent px-5 py-4 outline-none placeholder:text-soft"
        />
        {/* Next to the list, which may contain only options. */}
        <Command.Empty role="status" className="px-3 py-8 text-center text-soft text-sm">
          {t.nothing}
        </Command.Empty>
        <Command.List className="max-h-[50vh] overflow-y-auto text-sm not-empty:p-2">
          <Found go={go} typed={typed} />
          <Group heading={t.actions} rows={actions} go={go} />
          <Group heading={t.pages} rows={pages} go={go} />
          <Group
            heading={texts.account.workspaces.title}
            rows={workspaces.filter(({ id }) => id !== current).map(({ id, name }) => [t.moveTo(name), id])}
            go={move.mutate}
          />
        </Command.List>
      </Command>
    </dialog>
  )
}

function Group({
  heading,
  rows,
  go,
}: {
  heading: string
  rows: [string, string][]
  go: (href: string) => void
}) {
  if (rows.length === 0) return null
  return (
    <Command.Group heading={heading} className={GROUP}>
      {rows.map(([label, href]) => (
        <Item key={href} value={`${heading} ${label}`} onSelect={() => go(href)}>
          {label}
        </Item>
      ))}
    </Command.Group>
  )
}

/** The agents and files whose names contain the typed text. */
function Found({ typed, go }: { typed: string; go: (href: string) => void }) {
  const name = useDeferredValue(typed.trim())
  const cid = cidIn(name)
  const pins = useQuery({
    queryKey: ['pins', 'palette', cid],
    enabled: cid !== undefined,
    queryFn: async () => {
      const params = { query: { cid: cid ?? '', limit: MOST } }
      return (await unwrap(api.GET('/v3/files/public/pin_by_cid', { params }))).data.jobs
    },
  })
  const agents = useAgents()
  const files = useQuery({
    queryKey: ['files', 'palette', name],
    enabled: name.length > 1,
    queryFn: async () => {
      const query = { ...(cid ? { cid } : { name }), limit: MOST }
      const found = await Promise.all(
        (['public', 'private'] as const).map(async (network) => {
          const { data } = await unwrap(
            api.GET('/v3/files/{network}', { params: { path: { network }, query } }),
          )
          return data.files.map((file) => ({ ...file, network }))
        }),
      )
      return found.flat()
    },
  })
  const asked = name.toLowerCase()
  const named = asked
    ? (agents.data?.agents ?? []).filter((agent) =>
        `${agent.name} ${agent.agentId}`.toLowerCase().includes(asked),
      )
    : []
  const found = name.length > 1 ? (files.data ?? []) : []
  /** A CID has many spellings, so the typed one also counts as a name of the results. */
  const spelled = cid ? typed : ''
  return (
    <>
      {named.length > 0 && (
        <Command.Group heading={texts.nav.agents} className={GROUP}>
          {named.slice(0, MOST).map(({ agentId, name, emoji }) => (
            <Item
              key={agentId}
              value={`${name} ${agentId}`}
              onSelect={() => go(`/dashboard/agents/${agentId}`)}
              note={agentId}
            >
              {emoji} {name}
            </Item>
          ))}
        </Command.Group>
      )}
      {found.length > 0 && (
        <Command.Group heading={texts.nav.files} className={GROUP}>
          {found.slice(0, MOST).map(({ id, name, cid, network }) => (
            <Item
              key={id}
              value={`${name} ${id} ${spelled}`}
              onSelect={() => go(`/dashboard/files/${network}/${id}`)}
              note={shorten(cid)}
            >
              {name ?? texts.files.unnamed}
            </Item>
          ))}
        </Command.Group>
      )}
      {cid && pins.data && pins.data.length > 0 && (
        <Command.Group heading={texts.files.tabs.pins} className={GROUP}>
          {pins.data.map(({ id, name, cid, status }) => (
            <Item
              key={id}
              value={`${name} ${id} ${spelled}`}
              onSelect={() => go('/dashboard/files/pins')}
              note={texts.files.pins.states[status] ?? status}
            >
              {name ?? shorten(cid)}
            </Item>
          ))}
        </Command.Group>
      )}
    </>
  )
}

function Item({
  value,
  onSelect,
  note,
  children,
}: {
  value: string
  onSelect: () => void
  note?: string
  children: ReactNode
}) {
  return (
    <Command.Item value={value} onSelect={onSelect} className={ITEM}>
      <span className="min-w-0 truncate">{children}</span>
      {note && <code className="shrink-0 text-soft text-xs">{note}</code>}
    </Command.Item>
  )
}
