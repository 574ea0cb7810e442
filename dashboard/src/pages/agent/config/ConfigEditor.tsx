import { CodeEditor } from '../../../parts/code-editor.tsx'
import { texts } from '../../../texts.ts'

const t = texts.config

/** The whole config as JSON, and which of its keys the operator sets. */
export function ConfigEditor({
  text,
  onChange,
  operatorKeys,
}: {
  text: string
  onChange: (text: string) => void
  operatorKeys: string[]
}) {
  return (
    <>
      <CodeEditor label={t.json} value={text} onChange={onChange} />
      {operatorKeys.length > 0 && (
        <details className="mt-3 text-sm">
          <summary className="cursor-pointer text-soft hover:text-ink">
            {t.operatorKeys(operatorKeys.length)}
          </summary>
          <ul className="mt-2 grid gap-x-6 gap-y-1 sm:grid-cols-2">
            {operatorKeys.map((key) => (
              <li key={key} className="break-all font-mono text-soft text-xs">
                {key}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}
