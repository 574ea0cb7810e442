import { Icon } from '../parts/icon.tsx'
import { texts } from '../texts.ts'
import { setTheme, THEMES, useTheme } from './theme.ts'

export function ThemeSwitch() {
  const theme = useTheme()
  return (
    <fieldset aria-label={texts.shell.theme} className="inline-flex rounded-lg border border-line p-0.5">
      {THEMES.map((one) => (
        <button
          key={one}
          type="button"
          title={texts.shell.themes[one]}
          aria-label={texts.shell.themes[one]}
          aria-pressed={one === theme}
          onClick={() => setTheme(one)}
          className="rounded-md p-1.5 text-soft hover:text-ink aria-pressed:bg-tint aria-pressed:text-accent"
        >
          <Icon name={one} className="size-4" />
        </button>
      ))}
    </fieldset>
  )
}
