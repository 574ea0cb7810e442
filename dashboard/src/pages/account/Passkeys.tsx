import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { addPasskey } from '../../api/passkeys.ts'
import { browserName } from '../../parts/browser.ts'
import { FormDialog } from '../../parts/forms.tsx'
import { Cell, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Empty, Field, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Part, Sure } from './Part.tsx'

const readPasskeys = () => unwrap(api.GET('/v0/passkeys'))
type Passkey = Awaited<ReturnType<typeof readPasskeys>>['data']['passkeys'][number]
const words = texts.account.passkeys

/** @param canAdd whether browsers can make passkeys at this address. */
export function Passkeys({ canAdd }: { canAdd: boolean }) {
  const { data, error } = useQuery({ queryKey: ['passkeys'], queryFn: readPasskeys })
  const [open, setOpen] = useState<Passkey | 'new'>()
  const passkeys = data?.data.passkeys
  const add = canAdd && (
    <Button look="main" onClick={() => setOpen('new')}>
      {words.add}
    </Button>
  )
  return (
    <Part
      title={words.title}
      hint={canAdd ? words.hint : words.notHere}
      action={passkeys?.length ? add : null}
    >
      <Problem error={error} />
      {passkeys?.length === 0 && <Empty title={words.empty}>{add}</Empty>}
      {passkeys && passkeys.length > 0 && (
        <Table label={words.title} columns={words.columns}>
          {passkeys.map((passkey) => (
            <tr key={passkey.id}>
              <Cell className="max-w-60 truncate font-medium">{passkey.name}</Cell>
              <Cell className="text-soft">{passkey.synced ? words.synced : words.single}</Cell>
              <Cell className="whitespace-nowrap text-soft">
                <Time at={passkey.createdAt} />
              </Cell>
              <Cell className="whitespace-nowrap text-soft">
                {passkey.lastUsedAt ? <Time at={passkey.lastUsedAt} /> : texts.account.never}
              </Cell>
              <Cell className="text-right">
                <Button onClick={() => setOpen(passkey)}>{texts.account.remove}</Button>
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      {open === 'new' && <NewPasskey onClose={() => setOpen(undefined)} />}
      {open && open !== 'new' && <DeletePasskey passkey={open} onClose={() => setOpen(undefined)} />}
    </Part>
  )
}

function NewPasskey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const [name, setName] = useState(() => browserName(navigator.userAgent))
  const add = useMutation({
    mutationFn: () => addPasskey(name),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: ['passkeys'] })
      onClose()
    },
  })
  return (
    <FormDialog
      title={words.add}
      hint={words.addHint}
      submit={words.submit}
      saving={add}
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <Field
        label={words.name}
        value={name}
        required
        maxLength={100}
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  )
}

function DeletePasskey({ passkey: { id, name }, onClose }: { passkey: Passkey; onClose: () => void }) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE('/v0/passkeys/{passkeyId}', { params: { path: { passkeyId: id } } })),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: ['passkeys'] })
      onClose()
    },
  })
  return (
    <Sure
      title={words.removeTitle}
      hint={words.removeHint(name)}
      saving={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
