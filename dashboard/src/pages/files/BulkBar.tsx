import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { ConfirmByName, FormDialog, Select } from '../../parts/forms.tsx'
import { Button } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { type FileRecord, forEach, moveTo, type Network, useGroups } from './files.ts'

const words = texts.files.bulk

interface Chosen {
  files: FileRecord[]
  network: Network
  onDone: () => void
}

/** The actions on the selected files. */
export function BulkBar(props: Chosen) {
  const { files, onDone } = props
  const [open, setOpen] = useState<'delete' | 'group'>()
  const close = () => setOpen(undefined)
  return (
    <section
      aria-label={words.selected(files.length)}
      className="sticky top-0 z-10 mb-3 flex flex-wrap items-center gap-2 rounded-xl border border-accent bg-card px-4 py-2.5 text-sm shadow-lg"
    >
      <p className="mr-auto w-full font-medium md:w-auto">{words.selected(files.length)}</p>
      <Button changes onClick={() => setOpen('group')}>
        {words.group}
      </Button>
      <Button changes onClick={() => setOpen('delete')}>
        {texts.files.remove}
      </Button>
      <Button onClick={onDone}>{words.clear}</Button>
      {open === 'delete' && <DeleteDialog {...props} onClose={close} />}
      {open === 'group' && <GroupDialog {...props} onClose={close} />}
    </section>
  )
}

/** Runs work on each file, and reports progress. @throws if some failed, with the first reason */
function useWork(files: FileRecord[], work: (file: FileRecord) => Promise<unknown>, onDone: () => void) {
  const queries = useQueryClient()
  const [done, setDone] = useState(0)
  const saving = useMutation({
    async mutationFn() {
      const { failed, error } = await forEach(files, work, setDone)
      if (failed) throw new Error(words.failed(failed, files.length, error?.message ?? ''))
    },
    onSuccess: onDone,
    onSettled: () => queries.invalidateQueries(),
  })
  return { saving, done }
}

function DeleteDialog({ files, network, onDone, onClose }: Chosen & { onClose: () => void }) {
  const { saving, done } = useWork(
    files,
    ({ id }) => unwrap(api.DELETE('/v3/files/{network}/{id}', { params: { path: { network, id } } })),
    onDone,
  )
  return (
    <ConfirmByName
      title={words.deleteTitle(files.length)}
      hint={
        saving.isPending ? words.progress(done, files.length) : words.deleteHint(words.files(files.length))
      }
      name={words.files(files.length)}
      submit={texts.files.remove}
      saving={saving}
      onConfirm={() => saving.mutate()}
      onClose={onClose}
    />
  )
}

function GroupDialog({ files, network, onDone, onClose }: Chosen & { onClose: () => void }) {
  const { groups } = useGroups(network)
  const [id, setId] = useState('')
  const { saving, done } = useWork(files, (file) => moveTo(network, file, id || null), onDone)
  return (
    <FormDialog
      title={words.groupTitle(files.length)}
      submit={words.group}
      saving={saving}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
      {...(saving.isPending && { hint: words.progress(done, files.length) })}
    >
      <Select label={texts.files.group} value={id} onChange={(event) => setId(event.target.value)}>
        <option value="">{texts.files.noGroup}</option>
        {groups.map((group) => (
          <option key={group.id} value={group.id}>
            {group.name}
          </option>
        ))}
      </Select>
    </FormDialog>
  )
}
