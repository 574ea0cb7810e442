import { texts } from '../../../texts.ts'
import { type FileDiff, filesOf } from './diff.ts'

const { snapshots: words } = texts
const COLOURS: Record<string, string> = { '+': 'text-good', '-': 'text-bad', '@': 'text-accent' }
const SIGNS = { added: '+', removed: '−', modified: '±' }

/** The files of a diff; each expands to its lines. */
export function Diff({ diff }: { diff: string }) {
  const files = filesOf(diff)
  if (files.length === 0) return <p className="text-soft text-sm">{words.noDiff}</p>
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line">
      {files.map((file) => (
        <li key={file.name}>
          <OneFile file={file} isOpen={files.length === 1} />
        </li>
      ))}
    </ul>
  )
}

function OneFile({ file: { name, kind, lines }, isOpen }: { file: FileDiff; isOpen: boolean }) {
  return (
    <details open={isOpen}>
      <summary className="cursor-pointer px-3 py-2 text-sm hover:bg-tint">
        <span aria-hidden className="mr-2 font-mono">
          {SIGNS[kind]}
        </span>
        <code className="break-all">{name}</code> <span className="text-soft">{words.kinds[kind]}</span>
      </summary>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        className="max-h-96 overflow-auto border-line border-t bg-page p-3 font-mono text-xs leading-5"
      >
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a diff do not move
          <span key={index} className={`block ${COLOURS[line[0] ?? ''] ?? ''}`}>
            {line || ' '}
          </span>
        ))}
      </pre>
    </details>
  )
}
