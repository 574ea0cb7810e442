import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { FormDialog } from '../../parts/forms.tsx'
import { Cell, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Empty, Field, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { type Network, useGroups } from './files.ts'
import { NetworkSwitch } from './NetworkSwitch.tsx'

const words = texts.files.groups
type Group = ReturnType<typeof useGroups>['groups'][number]

/** The groups of a network. */
export function Groups() {
  const { network = 'public' } = useSearch({ from: '/shell/dashboard/files/groups' })
  const go = useNavigate({ from: '/dashboard/files/groups' })
  const setNetwork = (network: Network) =>
    void go({ search: network === 'private' ? { network } : {}, replace: true })
  const { groups, data, error } = useGroups(network)
  const [edited, setEdited] = useState<Group | 'new'>()
  const [removed, setRemoved] = useState<Group>()
  const create = (
    <Button changes look="main" onClick={() => setEdited('new')}>
      {words.create}
    </Button>
  )
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <NetworkSwitch network={network} onChange={setNetwork} />
        {groups.length > 0 && create}
      </div>
      <Problem error={error} />
      {data && groups.length === 0 && (
        <Empty title={words.empty} hint={words.emptyHint}>
          {create}
        </Empty>
      )}
      {groups.length > 0 && (
        <Table label={words.title} columns={[words.name, words.actions]}>
          {groups.map((group) => (
            <tr key={group.id}>
              <Cell className="w-full max-w-0">
                <Link
                  to="/dashboard/files"
                  search={{ group: group.id, ...(network === 'private' && { network }) }}
                  className="block truncate font-medium hover:text-accent"
                >
                  {group.name}
                </Link>
                <span className="block truncate text-soft text-xs">
                  {group.is_public ? words.isPublic : words.isNotPublic} · <Time at={group.created_at} />
                </span>
              </Cell>
              <Cell className="whitespace-nowrap">
                <Button
                  changes
                  className="mr-2"
                  aria-label={words.editNamed(group.name)}
                  onClick={() => setEdited(group)}
                >
                  {words.edit}
                </Button>
                <Button changes aria-label={words.removeNamed(group.name)} onClick={() => setRemoved(group)}>
                  {words.remove}
                </Button>
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      {edited && (
        <EditGroup
          group={edited === 'new' ? undefined : edited}
          network={network}
          onClose={() => setEdited(undefined)}
        />
      )}
      {removed && <RemoveGroup group={removed} network={network} onClose={() => setRemoved(undefined)} />}
    </>
  )
}

function EditGroup({
  group,
  network,
  onClose,
}: {
  group: Group | undefined
  network: Network
  onClose: () => void
}) {
  const queries = useQueryClient()
  const [name, setName] = useState(group?.name ?? '')
  const [isPublic, setPublic] = useState(group?.is_public ?? false)
  const saving = useMutation({
    mutationFn() {
      const body = { name, is_public: isPublic }
      if (!group) return unwrap(api.POST('/v3/groups/{network}', { params: { path: { network } }, body }))
      const params = { path: { network, id: group.id } }
      return unwrap(api.PUT('/v3/groups/{network}/{id}', { params, body }))
    },
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  return (
    <FormDialog
      title={group ? words.editNamed(group.name) : words.create}
      submit={group ? texts.files.file.save : words.create}
      saving={saving}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <Field label={words.name} required value={name} onChange={(event) => setName(event.target.value)} />
      <label className="flex items-start gap-2 text-sm">
        <input
          type="checkbox"
          checked={isPublic}
          onChange={(event) => setPublic(event.target.checked)}
          className="mt-0.5 size-4 accent-accent"
        />
        {words.publicHint}
      </label>
    </FormDialog>
  )
}

function RemoveGroup({ group, network, onClose }: { group: Group; network: Network; onClose: () => void }) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE('/v3/groups/{network}/{id}', { params: { path: { network, id: group.id } } })),
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  return (
    <FormDialog
      title={words.removeTitle}
      hint={words.removeHint(group.name)}
      submit={words.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
