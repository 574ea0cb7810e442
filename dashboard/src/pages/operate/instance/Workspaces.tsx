import { useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { usePages } from '../../../api/pages.ts'
import { Search } from '../../../parts/choice.tsx'
import { bytes } from '../../../parts/format.ts'
import { More } from '../../../parts/more.tsx'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Card, Empty, Loading, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Filter } from '../Filter.tsx'
import { RequireRole } from '../RequireRole.tsx'
import { usePlans } from './plans.ts'
import { ChangeWorkspace, NewWorkspace, type Workspace } from './WorkspaceForms.tsx'

const t = texts.operate.workspaces
const PAGE = 50
/** The stream has only the events of one workspace, so the page polls for the others. */
const EACH_MS = 30_000

/** All workspaces of the instance, and its totals. */
export function Workspaces() {
  return (
    <RequireRole who="admins">
      <Usage />
      <List />
    </RequireRole>
  )
}

function Usage() {
  const { data, error } = useQuery({
    queryKey: ['instance-usage'],
    queryFn: () => unwrap(api.GET('/v0/admin/usage')),
    refetchInterval: EACH_MS,
  })
  const usage = data?.data
  return (
    <Section title={t.usage}>
      <Problem error={error} />
      {usage && (
        <div className="grid gap-4 md:grid-cols-3">
          {(['public', 'private'] as const).map((network) => (
            <Card key={network} title={t.onNetwork[network]}>
              <p className="font-semibold text-2xl tabular-nums">{bytes(usage.networks[network].bytes)}</p>
              <p className="text-soft text-sm">{texts.overview.filesOf(usage.networks[network].files)}</p>
            </Card>
          ))}
          <Card title={texts.overview.agents}>
            <p className="font-semibold text-2xl tabular-nums">
              {Object.values(usage.agents).reduce((sum, n) => sum + n, 0)}
            </p>
            <p className="flex flex-wrap gap-x-4">
              {Object.entries(usage.agents)
                .filter(([, n]) => n > 0)
                .map(([state, n]) => (
                  <State key={state} state={state} label={`${n} ${texts.overview.states[state] ?? state}`} />
                ))}
            </p>
          </Card>
        </div>
      )}
    </Section>
  )
}

function List() {
  const [typed, setTyped] = useState('')
  const [plan, setPlan] = useState('')
  const [open, setOpen] = useState<Workspace | 'new'>()
  const name = useDeferredValue(typed.trim())
  const { plans } = usePlans()
  const pages = usePages(['workspaces', name, plan], async (pageToken) => {
    const query = {
      limit: PAGE,
      ...(name && { name }),
      ...(plan && { plan }),
      ...(pageToken && { pageToken }),
    }
    const { data } = await unwrap(api.GET('/v0/admin/workspaces', { params: { query } }))
    return { items: data.workspaces, next: data.next_page_token }
  })
  const { items, error } = pages
  const close = () => setOpen(undefined)
  return (
    <Section
      title={t.title}
      hint={t.hint}
      actions={
        <Button look="main" onClick={() => setOpen('new')}>
          {t.create}
        </Button>
      }
    >
      <div className="mb-3 flex flex-wrap gap-2">
        <Search label={t.find} value={typed} onChange={setTyped} />
        <Filter
          label={t.plan}
          value={plan}
          onChange={setPlan}
          options={[['', t.anyPlan], ...(plans ?? []).map((one) => [one.name, one.name] as const)]}
        />
      </div>
      <Problem error={error} />
      {!items && !error && <Loading />}
      {items?.length === 0 && <Empty title={t.nothing} />}
      {items && items.length > 0 && (
        <Table
          label={t.title}
          columns={Object.values(t.columns)}
          numbers={[t.columns.files, t.columns.bytes, t.columns.agents]}
        >
          {items.map((workspace) => (
            <tr key={workspace.id} className="hover:bg-tint/40">
              <Cell className="w-full min-w-44 max-w-0">
                <p className="truncate font-medium" title={workspace.name}>
                  {workspace.name}
                </p>
              </Cell>
              <Cell className="whitespace-nowrap">{workspace.plan}</Cell>
              <Cell numeric>{workspace.usage.files.toLocaleString('en')}</Cell>
              <Cell numeric>{bytes(workspace.usage.bytes)}</Cell>
              <Cell numeric>{workspace.usage.agents}</Cell>
              <Cell className="whitespace-nowrap text-soft">
                <Time at={workspace.createdAt} />
              </Cell>
              <Cell className="text-right">
                <Button onClick={() => setOpen(workspace)}>{t.change}</Button>
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      <More {...pages} />
      {open === 'new' && <NewWorkspace onClose={close} />}
      {open && open !== 'new' && <ChangeWorkspace workspace={open} onClose={close} />}
    </Section>
  )
}
