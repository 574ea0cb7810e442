import type { ReactNode } from 'react'
import { Copy } from '../../../parts/copy.tsx'

/** A line of a description list: a text to copy, with actions and a hint. */
export function Line({
  label,
  shown,
  copied = shown,
  hint,
  children,
}: {
  label: string
  shown: string
  /** The text that the button copies; no button if empty. */
  copied?: string
  hint?: string
  children?: ReactNode
}) {
  return (
    <div className="grid gap-x-6 gap-y-1 sm:grid-cols-[10rem_minmax(0,1fr)]">
      <dt className="text-soft sm:pt-2">{label}</dt>
      <dd className="flex flex-wrap items-center gap-2">
        {shown && (
          <code className="min-w-0 flex-1 basis-60 break-all rounded-lg bg-page px-3 py-2 text-xs">
            {shown}
          </code>
        )}
        {copied && <Copy text={copied} />}
        {children}
        {hint && <p className="w-full text-soft text-xs">{hint}</p>}
      </dd>
    </div>
  )
}
