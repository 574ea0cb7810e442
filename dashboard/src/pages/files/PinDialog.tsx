import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { FormDialog, Select, TextArea } from '../../parts/forms.tsx'
import { Button, Field, Modal, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useGroups } from './files.ts'
import { Progress, usePinning } from './pinning.tsx'

const words = texts.files.pins

/** Asks for the CID to pin, and for peers that may have it. */
export function PinDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const { groups } = useGroups('public')
  const [form, setForm] = useState({ cid: '', name: '', group: '', nodes: '' })
  const pin = useMutation({
    mutationFn() {
      const host_nodes = form.nodes.split(/\s+/).filter(Boolean)
      const body = {
        cid: form.cid.trim(),
        ...(form.name && { name: form.name }),
        ...(form.group && { group_id: form.group }),
        ...(host_nodes.length > 0 && { host_nodes }),
      }
      return unwrap(api.POST('/v3/files/public/pin_by_cid', { body }))
    },
    onSuccess: () => queries.invalidateQueries(),
  })
  const set = (field: keyof typeof form) => (event: { target: { value: string } }) =>
    setForm({ ...form, [field]: event.target.value })
  if (pin.data) return <Pinned id={pin.data.data.id} onClose={onClose} />
  return (
    <FormDialog
      title={words.add}
      hint={words.addHint}
      submit={words.add}
      saving={pin}
      onSubmit={() => pin.mutate()}
      onClose={onClose}
    >
      <Field label={words.cid} required value={form.cid} onChange={set('cid')} />
      <Field label={words.name} value={form.name} onChange={set('name')} />
      {groups.length > 0 && (
        <Select label={texts.files.group} value={form.group} onChange={set('group')}>
          <option value="">{texts.files.noGroup}</option>
          {groups.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
      )}
      <TextArea
        label={words.nodes}
        placeholder={words.nodeExample}
        value={form.nodes}
        onChange={set('nodes')}
      />
    </FormDialog>
  )
}

/** Shows the state of the pin, which continues if the dialog is closed. */
function Pinned({ id, onClose }: { id: string; onClose: () => void }) {
  const operation = usePinning(id)
  const state = operation?.state ?? 'queued'
  return (
    <Modal title={words.add} onClose={onClose}>
      <div role="status" className="text-sm">
        <p className="break-words font-medium">{operation?.target_name}</p>
        <State state={state} label={texts.operate.operations.states[state]} />
        {state !== 'succeeded' && state !== 'failed' && <p className="mt-2 text-soft">{words.goesOn}</p>}
      </div>
      <Progress operation={operation} />
      <div className="mt-4 flex justify-end gap-2">
        {state === 'succeeded' && (
          <Link
            to="/dashboard/files/$network/$fileId"
            params={{ network: 'public', fileId: id }}
            className="rounded-lg bg-accent px-3 py-1.5 font-medium text-on-accent text-sm"
          >
            {words.open}
          </Link>
        )}
        <Button onClick={onClose}>{words.close}</Button>
      </div>
    </Modal>
  )
}
