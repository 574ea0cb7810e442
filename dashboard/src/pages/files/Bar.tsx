/** A progress bar. @param value from 0 to 1; unknown if undefined */
export function Bar({ label, value, className = '' }: { label: string; value?: number; className?: string }) {
  return (
    <progress
      aria-label={label}
      {...(value !== undefined && { value })}
      className={`h-1.5 appearance-none overflow-hidden rounded-full bg-line [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-line [&::-webkit-progress-value]:bg-accent ${className}`}
    />
  )
}
