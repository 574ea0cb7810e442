/** A table made of grid rows with table roles, for lists with only their visible rows in the page. */
import type { ReactNode, Ref } from 'react'

interface Part {
  children: ReactNode
  className?: string
}

export function Group({
  children,
  className = '',
  innerRef,
  height,
}: Part & {
  innerRef?: Ref<HTMLDivElement>
  height?: number
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    <div
      ref={innerRef}
      role="rowgroup"
      className={height === undefined ? className : `relative ${className}`}
      style={height === undefined ? undefined : { height }}
    >
      {children}
    </div>
  )
}

/** @param top the position in the list, in pixels. */
export function Row({ index, top, children, className = '' }: Part & { index: number; top?: number }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    // biome-ignore lint/a11y/useFocusableInteractive: its controls take the focus
    <div
      role="row"
      aria-rowindex={index}
      className={top === undefined ? className : `absolute inset-x-0 top-0 ${className}`}
      style={top === undefined ? undefined : { transform: `translateY(${top}px)` }}
    >
      {children}
    </div>
  )
}

export function Head({ children, className = '', sort }: Part & { sort?: 'ascending' | 'descending' }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    // biome-ignore lint/a11y/useFocusableInteractive: its controls take the focus
    <div role="columnheader" aria-sort={sort} className={`font-medium ${className}`}>
      {children}
    </div>
  )
}

export function Cell({ children, className = '' }: Part) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    <div role="cell" className={className}>
      {children}
    </div>
  )
}
