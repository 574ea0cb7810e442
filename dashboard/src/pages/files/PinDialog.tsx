import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { Button, Field, Modal, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

export function PinDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const [cid, setCid] = useState('')
  const [name, setName] = useState('')
  const pin = useMutation({
    mutationFn: () =>
      unwrap(api.POST('/v3/files/public/pin_by_cid', { body: { cid: cid.trim(), ...(name && { name }) } })),
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    pin.mutate()
  }
  return (
    <Modal title={texts.files.pin} onClose={onClose}>
      <form className="space-y-4" onSubmit={submit}>
        <p className="text-soft text-sm">{texts.files.pinHint}</p>
        <Field
          label={texts.files.cid}
          required
          value={cid}
          onChange={(event) => setCid(event.target.value)}
        />
        <Field
          label={texts.files.optionalName}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Problem error={pin.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button look="main" type="submit" disabled={pin.isPending}>
            {texts.files.pin}
          </Button>
        </div>
      </form>
    </Modal>
  )
}
