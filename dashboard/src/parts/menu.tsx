import * as Dropdown from '@radix-ui/react-dropdown-menu'
import type { ReactNode } from 'react'
import { useMayChange } from './rights.tsx'

/** A three-dot button that opens a menu of further actions. */
export function Menu({
  label,
  children,
  changes = false,
}: {
  label: string
  children: ReactNode
  /** True for a change: left out for users who may not change anything here. */
  changes?: boolean
}) {
  const mayChange = useMayChange()
  if (changes && !mayChange) return null
  return (
    // Not modal: the scroll lock would add a <style> to the page, which its policy refuses.
    <Dropdown.Root modal={false}>
      <Dropdown.Trigger
        aria-label={label}
        className="inline-flex size-9 items-center justify-center rounded-lg text-soft hover:bg-tint hover:text-ink data-[state=open]:bg-tint"
      >
        <svg aria-hidden="true" viewBox="0 0 16 16" className="size-4 fill-current">
          <circle cx="3" cy="8" r="1.4" />
          <circle cx="8" cy="8" r="1.4" />
          <circle cx="13" cy="8" r="1.4" />
        </svg>
      </Dropdown.Trigger>
      {/* Inside the page's landmark, for people who navigate by landmarks. */}
      <Dropdown.Portal container={document.getElementById('content')}>
        <Dropdown.Content
          align="end"
          sideOffset={4}
          className="z-20 min-w-44 rounded-xl border border-line bg-card p-1 text-sm shadow-xl"
        >
          {children}
        </Dropdown.Content>
      </Dropdown.Portal>
    </Dropdown.Root>
  )
}

export function MenuItem({
  children,
  look = 'plain',
  disabled = false,
  changes = false,
  onSelect,
}: {
  children: ReactNode
  look?: 'plain' | 'danger'
  disabled?: boolean
  /** True for a change: left out for users who may not change anything here. */
  changes?: boolean
  onSelect: () => void
}) {
  const mayChange = useMayChange()
  if (changes && !mayChange) return null
  const select = ({ target }: Event) => {
    // A dialog that opens now later returns the focus to its current owner, and the menu is gone by then.
    const menu = target instanceof Element && target.closest('[role=menu]')?.getAttribute('aria-labelledby')
    if (menu) document.getElementById(menu)?.focus()
    onSelect()
  }
  return (
    <Dropdown.Item
      disabled={disabled}
      onSelect={select}
      className={`cursor-pointer rounded-lg px-3 py-2 outline-none data-[disabled]:cursor-default data-[highlighted]:bg-tint data-[disabled]:opacity-50 ${look === 'danger' ? 'text-bad' : ''}`}
    >
      {children}
    </Dropdown.Item>
  )
}
