/** The small components of every page. */
import { type ComponentProps, type ReactNode, useEffect, useId, useLayoutEffect, useRef } from 'react'
import { texts } from '../texts.ts'
import { rememberFocus } from './focus.ts'
import { useMayChange } from './rights.tsx'
import { setTitle } from './title.ts'

type Look = 'main' | 'plain' | 'danger' | 'bare'
const LOOKS: Record<Look, string> = {
  main: 'bg-accent text-on-accent hover:opacity-90',
  plain: 'border border-line bg-card hover:border-accent',
  bare: '',
  danger: 'bg-bad text-page hover:opacity-90',
}

export function Button({
  look = 'plain',
  className = '',
  changes = false,
  ...rest
}: ComponentProps<'button'> & {
  look?: Look
  /** True for a change: left out for users who may not change anything here. */
  changes?: boolean
}) {
  const mayChange = useMayChange()
  const ref = useKeptFocus(rest.disabled ?? false)
  if (changes && !mayChange) return null
  return (
    <button
      ref={ref}
      type="button"
      className={`inline-flex min-h-9 items-center justify-center gap-2 rounded-lg px-3.5 py-1.5 font-medium text-sm motion-safe:transition disabled:opacity-50 ${LOOKS[look]} ${className}`}
      {...rest}
    />
  )
}

/** Returns the focus to a button after its work is done: browsers take it from disabled buttons. */
function useKeptFocus(isOff: boolean) {
  const ref = useRef<HTMLButtonElement>(null)
  const hadFocus = useRef(false)
  useLayoutEffect(() => {
    if (isOff) hadFocus.current = document.activeElement === ref.current
    else if (hadFocus.current && document.activeElement === document.body) ref.current?.focus()
    if (!isOff) hadFocus.current = false
  }, [isOff])
  return ref
}

export function Card({
  title,
  children,
  className = '',
}: {
  title?: string
  children: ReactNode
  className?: string
}) {
  return (
    <section className={`rounded-xl border border-line bg-card p-5 ${className}`}>
      {title && <h2 className="mb-3 font-medium text-soft text-sm">{title}</h2>}
      {children}
    </section>
  )
}

export function Field({ label, ...rest }: ComponentProps<'input'> & { label: string }) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium text-sm">
        {label}
      </label>
      <input
        id={id}
        autoComplete="off"
        className="w-full rounded-lg border border-line bg-page px-3 py-2 text-sm"
        {...rest}
      />
    </div>
  )
}

let isFirstPage = true

/** The heading of a page, and its actions. The heading gets the focus after navigation from another page. */
export function PageHead({
  title,
  lead,
  note,
  children,
}: {
  title: string
  /** A picture before the heading. */
  lead?: ReactNode
  /** A note, in a line below. */
  note?: ReactNode
  children?: ReactNode
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    setTitle({ page: title })
  }, [title])
  useEffect(() => {
    if (!isFirstPage) heading.current?.focus({ preventScroll: true })
    isFirstPage = false
  }, [])
  return (
    <div className="mb-6 flex flex-wrap items-center justify-between gap-3">
      <div className="flex min-w-0 items-center gap-3">
        {lead}
        <div className="min-w-0">
          <h1
            ref={heading}
            tabIndex={-1}
            title={title}
            className="line-clamp-3 min-w-0 break-words font-semibold text-2xl tracking-tight outline-none"
          >
            {title}
          </h1>
          {note && <div className="mt-0.5 flex flex-wrap items-center gap-x-2 text-soft text-sm">{note}</div>}
        </div>
      </div>
      <div className="flex flex-wrap items-center gap-2">{children}</div>
    </div>
  )
}

export function Empty({
  title,
  hint,
  changes = false,
  children,
}: {
  title: string
  hint?: string
  /** True if the hint suggests a change: left out for users who may not change anything here. */
  changes?: boolean
  children?: ReactNode
}) {
  const mayChange = useMayChange()
  const isHinted = hint && (mayChange || !changes)
  return (
    <div className="rounded-xl border border-line border-dashed px-6 py-14 text-center">
      <p className="font-medium">{title}</p>
      {isHinted && <p className="mt-1 text-soft text-sm">{hint}</p>}
      {children && <div className="mt-4 flex justify-center gap-2">{children}</div>}
    </div>
  )
}

/** A placeholder for a list that is loading. It appears only after a moment, unless `atOnce`. */
export function Loading({ atOnce = false }: { atOnce?: boolean }) {
  return (
    <div
      role="status"
      className={`space-y-3 rounded-xl border border-line bg-card p-4 ${atOnce ? '' : 'late'}`}
    >
      <span className="sr-only">{texts.loading}</span>
      {['w-2/5', 'w-3/5', 'w-1/2'].map((width) => (
        <div key={width} className={`h-4 rounded bg-line motion-safe:animate-pulse ${width}`} />
      ))}
    </div>
  )
}

export function Problem({ error }: { error: Error | null }) {
  if (!error) return null
  return (
    <p role="alert" className="rounded-lg border border-bad px-3 py-2 text-bad text-sm">
      {texts.failed}: {error.message}
    </p>
  )
}

const TONES: Record<string, string> = {
  running: 'text-good',
  succeeded: 'text-good',
  success: 'text-good',
  ok: 'text-good',
  pinned: 'text-good',
  verified: 'text-good',
  pending: 'text-busy',
  starting: 'text-busy',
  queued: 'text-busy',
  degraded: 'text-busy',
  paused: 'text-busy',
  backfilled: 'text-busy',
  searching: 'text-busy',
  retrieving: 'text-busy',
  prechecking: 'text-busy',
  failed: 'text-bad',
  error: 'text-bad',
  down: 'text-bad',
  expired: 'text-bad',
  spent: 'text-bad',
  refused: 'text-bad',
}

const LIVE = ['running']
const DONE = ['succeeded', 'success', 'pinned', 'verified']

/** A state as a word, with a sign in its colour: a tick if done, a lit dot if in progress, otherwise a dot. */
export function State({ state, label = state }: { state: string; label?: string | undefined }) {
  return (
    <span
      className={`inline-flex items-center gap-1.5 whitespace-nowrap text-sm ${TONES[state] ?? 'text-soft'}`}
    >
      {DONE.includes(state) ? (
        <svg
          aria-hidden="true"
          viewBox="0 0 12 12"
          className="-mx-0.5 size-3 fill-none stroke-2 stroke-current"
        >
          <path d="m2 6.5 2.7 2.7L10 3.4" />
        </svg>
      ) : (
        <span
          aria-hidden="true"
          className={`size-2 rounded-full bg-current ${LIVE.includes(state) ? 'ring-3 ring-current/25' : ''}`}
        />
      )}
      {label}
    </span>
  )
}

/** A native dialog: it keeps the focus, and Escape closes it. */
export function Modal({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ReactNode
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Runs before React removes the dialog: a dialog that is still open then does not return the focus.
  useLayoutEffect(() => {
    const dialog = ref.current
    const giveBack = rememberFocus()
    dialog?.showModal()
    return () => {
      dialog?.close()
      giveBack(dialog)
    }
  }, [])
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onClose={onClose}
      className="m-auto w-[calc(100%-2rem)] max-w-md rounded-2xl border border-line bg-card p-6 text-ink shadow-2xl"
    >
      <h2 id={id} className="mb-4 font-semibold text-lg">
        {title}
      </h2>
      {children}
    </dialog>
  )
}
