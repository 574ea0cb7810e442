import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { FormDialog, Select, TextArea } from '../../parts/forms.tsx'
import { Field } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useGroups } from './files.ts'

const words = texts.files.pins

/** Asks what is to be pinned, and where it may be had. */
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
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  const set = (field: keyof typeof form) => (event: { target: { value: string } }) =>
    setForm({ ...form, [field]: event.target.value })
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
        placeholder="/ip4/203.0.113.7/tcp/4001/p2p/12D3Koo…"
        value={form.nodes}
        onChange={set('nodes')}
      />
    </FormDialog>
  )
}
