import { Children, type ReactNode, useId } from 'react'

/** A section of a page: a heading with actions at its end, and the content. */
export function Section({
  title,
  hint,
  actions,
  children,
  className = '',
}: {
  title: string
  hint?: ReactNode
  actions?: ReactNode
  children: ReactNode
  className?: string
}) {
  const id = useId()
  return (
    <section aria-labelledby={id} className={`mb-8 ${className}`}>
      <div className="mb-3 flex flex-wrap items-end justify-between gap-x-4 gap-y-2">
        <div className="min-w-0">
          <h2 id={id} className="font-semibold text-base">
            {title}
          </h2>
          {hint && <p className="mt-0.5 max-w-3xl text-soft text-sm">{hint}</p>}
        </div>
        {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** A list whose items share one box, with a line between them. */
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul aria-label={label} className="divide-y divide-line rounded-xl border border-line bg-card">
      {children}
    </ul>
  )
}

/** A row with a description on the left and actions on the right; on a phone the actions are below. */
export function Row({ children, actions }: { children: ReactNode; actions?: ReactNode }) {
  return (
    <li className="flex flex-col gap-x-4 gap-y-3 px-4 py-3 md:flex-row md:items-start">
      <div className="min-w-0 flex-1">{children}</div>
      {actions && <div className="flex shrink-0 flex-wrap items-center gap-2">{actions}</div>}
    </li>
  )
}

/** A word next to a name, such as a version. */
export function Tag({ children }: { children: ReactNode }) {
  return (
    <span className="inline-block max-w-full truncate rounded border border-line bg-page px-1.5 py-px align-middle text-soft text-xs">
      {children}
    </span>
  )
}

/** A note that is not an error: what to know, and what to do about it. */
export function Note({ children, actions }: { children: ReactNode; actions?: ReactNode }) {
  return (
    <div
      role="status"
      className="mb-4 flex flex-wrap items-center justify-between gap-3 rounded-xl border border-line bg-tint px-4 py-3 text-sm"
    >
      <div className="min-w-0 flex-1 break-words">{children}</div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  )
}

/** Facts in one line, separated by dots; missing facts are left out. */
export function Dotted({ children }: { children: ReactNode }) {
  const facts = Children.toArray(children).filter((fact) => fact !== '')
  return facts.map((fact, i) => (i === 0 ? fact : [' · ', fact]))
}
