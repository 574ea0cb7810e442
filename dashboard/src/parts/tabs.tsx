import { Link, type LinkProps } from '@tanstack/react-router'

/** Pages of one thing, as links side by side; on a phone they scroll. */
export function Tabs({ label, tabs }: { label: string; tabs: (LinkProps & { label: string })[] }) {
  return (
    <nav aria-label={label} className="-mx-4 mb-6 overflow-x-auto border-line border-b px-4 md:mx-0 md:px-0">
      <div className="flex">
        {tabs.map(({ label, ...link }) => (
          <Link
            key={label}
            {...link}
            activeOptions={{ exact: true, includeSearch: false }}
            className="-mb-px whitespace-nowrap border-transparent border-b-2 px-2 py-2.5 font-medium text-sm text-soft hover:text-ink aria-[current=page]:border-accent aria-[current=page]:text-accent"
          >
            {label}
          </Link>
        ))}
      </div>
    </nav>
  )
}
