import { Button, Modal } from '../parts/ui.tsx'
import { texts } from '../texts.ts'
import { GO } from './keys.ts'

const t = texts.shell

/** Lists the keyboard shortcuts. */
export function Help({ onClose }: { onClose: () => void }) {
  const pages = Object.keys(GO) as (keyof typeof GO)[]
  const rows: [string[], string][] = [
    [[t.paletteKeys], t.palette],
    [['/'], t.toSearch],
    ...pages.map((letter): [string[], string] => [['g', letter], t.goTo(t.pagesOfKeys[letter])]),
    [['?'], t.help],
    [['Esc'], texts.close],
  ]
  return (
    <Modal title={t.help} onClose={onClose}>
      <dl className="space-y-2.5 text-sm">
        {rows.map(([keys, what]) => (
          <div key={what} className="flex items-center justify-between gap-4">
            <dt>{what}</dt>
            <dd className="flex gap-1">
              {keys.map((key) => (
                <kbd
                  key={key}
                  className="rounded-md border border-line bg-page px-2 py-0.5 font-mono text-xs"
                >
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <div className="mt-5 flex justify-end">
        <Button onClick={onClose}>{texts.close}</Button>
      </div>
    </Modal>
  )
}
