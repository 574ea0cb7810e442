import { type ReactNode, useId } from 'react'
import { FormDialog } from '../../parts/forms.tsx'
import { texts } from '../../texts.ts'

/** A section of the page, with its actions. */
export function Part({
  title,
  hint,
  action,
  children,
}: {
  title: string
  hint: string
  action?: ReactNode
  children: ReactNode
}) {
  const id = useId()
  return (
    <section aria-labelledby={id}>
      <div className="mb-4 flex flex-wrap items-start justify-between gap-3">
        <div>
          <h2 id={id} className="font-semibold text-lg">
            {title}
          </h2>
          <p className="mt-1 text-soft text-sm">{hint}</p>
        </div>
        {action}
      </div>
      {children}
    </section>
  )
}

/** Asks for confirmation, and explains the consequences. */
export function Sure({
  title,
  hint,
  saving,
  onConfirm,
  onClose,
}: {
  title: string
  hint: string
  saving: { isPending: boolean; error: Error | null }
  onConfirm: () => void
  onClose: () => void
}) {
  return (
    <FormDialog
      title={title}
      hint={hint}
      submit={texts.account.remove}
      look="danger"
      saving={saving}
      onSubmit={onConfirm}
      onClose={onClose}
    />
  )
}
