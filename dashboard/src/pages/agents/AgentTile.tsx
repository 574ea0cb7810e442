/** The picture of an agent: its emoji, or the first letter of its name. */
export function AgentTile({
  agent: { emoji, name },
  size = 'size-9 text-sm',
}: {
  agent: { emoji: string | null; name: string }
  size?: string
}) {
  return (
    <span
      aria-hidden="true"
      className={`flex shrink-0 items-center justify-center overflow-hidden rounded-lg bg-tint font-medium text-accent ${size}`}
    >
      {emoji || [...name][0]?.toUpperCase()}
    </span>
  )
}
