/** Line icons of 24 by 24, in the colour of the text. */
const PATHS = {
  overview: 'M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z',
  files: 'M6 3h8l5 5v13H6zM14 3v5h5',
  agents: 'M5 9h14v10H5zM12 9V5M9.5 5h5M9 13v2M15 13v2M2.5 12v4M21.5 12v4',
  spending:
    'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM15 9c-.5-1-1.6-1.6-3-1.6-1.7 0-3 .9-3 2.3 0 3.2 6 1.5 6 4.6 0 1.4-1.3 2.3-3 2.3-1.4 0-2.5-.6-3-1.6M12 5.7v12.6',
  operate: 'M4 7h9M17 7h3M15 5v4M4 12h3M11 12h9M9 10v4M4 17h9M17 17h3M15 15v4',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5 20 20',
  account: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4 21c1-4 4-6 8-6s7 2 8 6',
  light:
    'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M5 19l1.5-1.5M17.5 6.5 19 5',
  dark: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  done: 'm5 12.5 4.5 4.5L19 7',
  out: 'M14 4h5v16h-5M4 12h10M10 8l4 4-4 4',
  help: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.7 2.2c-.8.5-1.2 1-1.2 1.8M12 16.5v.5',
  upload: 'M12 16V5M7.5 9.5 12 5l4.5 4.5M5 16v3h14v-3',
  system: 'M3 5h18v11H3zM8 20h8M12 16v4',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, className = 'size-5' }: { name: IconName; className?: string }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 24 24"
      className={`shrink-0 ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}

/** An icon button; its label shows on hover. */
export function IconButton({
  icon,
  label,
  onClick,
  className = '',
}: {
  icon: IconName
  label: string
  onClick: () => void
  className?: string
}) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      onClick={onClick}
      className={`grid size-9 shrink-0 place-items-center rounded-lg text-soft hover:bg-tint hover:text-ink ${className}`}
    >
      <Icon name={icon} className="size-4.5" />
    </button>
  )
}
