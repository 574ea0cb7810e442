import { type ComponentProps, type FormEvent, type ReactNode, useId, useState } from 'react'
import { texts } from '../texts.ts'
import { Button, Field, Modal, Problem } from './ui.tsx'

const BOX = 'min-h-9.5 w-full rounded-lg border border-line bg-page px-3 py-2 text-sm'

export function Select({ label, children, ...rest }: ComponentProps<'select'> & { label: string }) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium text-sm">
        {label}
      </label>
      <select id={id} className={BOX} {...rest}>
        {children}
      </select>
    </div>
  )
}

export function TextArea({ label, ...rest }: ComponentProps<'textarea'> & { label: string }) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium text-sm">
        {label}
      </label>
      <textarea id={id} rows={4} className={BOX} {...rest} />
    </div>
  )
}

interface Saving {
  isPending: boolean
  error: Error | null
}

/** A form in a dialog: its fields, what went wrong, and the two buttons. */
export function FormDialog({
  title,
  hint,
  submit,
  saving,
  look = 'main',
  disabled = false,
  onSubmit,
  onClose,
  children,
}: {
  title: string
  hint?: string
  /** The label of the button. */
  submit: string
  saving: Saving
  look?: 'main' | 'danger'
  disabled?: boolean
  onSubmit: () => void
  onClose: () => void
  children?: ReactNode
}) {
  const send = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <Modal title={title} onClose={onClose}>
      <form className="space-y-4" onSubmit={send}>
        {hint && <p className="text-soft text-sm">{hint}</p>}
        {children}
        <Problem error={saving.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button look={look} type="submit" disabled={disabled || saving.isPending}>
            {submit}
          </Button>
        </div>
      </form>
    </Modal>
  )
}

/** A button that asks for confirmation. */
export function AskedButton({
  label,
  submit = label,
  title,
  hint,
  className,
  saving,
  onConfirm,
}: {
  label: string
  /** The label of the dialog's button, if it differs. */
  submit?: string
  title: string
  hint: string
  className?: string
  saving: Saving
  onConfirm: () => void
}) {
  const [isAsked, setAsked] = useState(false)
  return (
    <>
      <Button changes className={className} onClick={() => setAsked(true)}>
        {label}
      </Button>
      {isAsked && (
        <FormDialog
          title={title}
          hint={hint}
          submit={submit}
          look="danger"
          saving={saving}
          onSubmit={onConfirm}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}

/** Confirms a removal that cannot be undone, of an agent or many files: the button works once the name is typed. */
export function ConfirmByName({
  name,
  onConfirm,
  ...rest
}: {
  title: string
  hint: string
  /** The name to type. */
  name: string
  submit: string
  saving: Saving
  onConfirm: () => void
  onClose: () => void
}) {
  const [typed, setTyped] = useState('')
  return (
    <FormDialog {...rest} look="danger" disabled={typed !== name} onSubmit={onConfirm}>
      <Field label={texts.typeName(name)} value={typed} onChange={(event) => setTyped(event.target.value)} />
    </FormDialog>
  )
}
