import { Link, type LinkProps, useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { setTitle } from './title.ts'

const isBelow = (path = '', other = '') => path.startsWith(`${other}/`)

/** Links to the pages of one thing, side by side. On a phone they scroll, and the open page is in view. */
export function Tabs({ label, tabs }: { label: string; tabs: (LinkProps & { label: string })[] }) {
  const nav = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path decides which page is open
  useEffect(() => {
    const current = nav.current?.querySelector('[aria-current=page]')
    current?.scrollIntoView({ block: 'nearest', inline: 'center' })
    setTitle({ tab: current?.textContent ?? '' })
    return () => setTitle({ tab: '' })
  }, [pathname])
  return (
    <nav
      ref={nav}
      aria-label={label}
      className="fading -mx-4 -mt-2 mb-6 overflow-x-auto border-line border-b px-4 md:mx-0 md:px-0"
    >
      <div className="flex w-max md:w-auto">
        {tabs.map(({ label, ...link }) => (
          <Link
            key={label}
            {...link}
            // A tab is active for all pages below it, except those that have their own tab.
            activeOptions={{ exact: tabs.some((other) => isBelow(other.to, link.to)), includeSearch: false }}
            className="-mb-px whitespace-nowrap border-transparent border-b-2 px-2 py-2.5 font-medium text-sm text-soft hover:text-ink aria-[current=page]:border-accent aria-[current=page]:text-accent"
          >
            {label}
          </Link>
        ))}
      </div>
    </nav>
  )
}
