import { useQuery } from '@tanstack/react-query'
import { parse } from 'papaparse'
import { bytes } from '../../../parts/format.ts'
import { Markdown } from '../../../parts/markdown.tsx'
import { Note } from '../../../parts/section.tsx'
import { Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { fetchBeginning, totalOf } from './beginning.ts'

const words = texts.files.preview
/** The most bytes of a text that are read, and the most rows of a table that are shown. */
const MAX_BYTES = 262_144
const MAX_ROWS = 500

/**
 * Renders the beginning of a text: Markdown with its headings and lists, CSV as a table.
 * @param version changes when a swap changes the content at the CID.
 * @param locate returns the URL of the file.
 */
export function Reading({
  cid,
  name,
  version,
  form,
  locate,
}: {
  cid: string
  name: string
  version: string | undefined
  form: 'markdown' | 'table'
  locate: () => Promise<string>
}) {
  const { data, error } = useQuery({
    queryKey: ['reading', cid, version],
    queryFn: async ({ signal }) => {
      const answer = await fetchBeginning(await locate(), MAX_BYTES, signal)
      return answer ? { text: await answer.text(), total: totalOf(answer) } : { text: '', total: 0 }
    },
    staleTime: 'static',
    retry: false,
  })
  if (error) return <Problem error={error} />
  if (!data) return <p className="text-soft text-sm">{texts.loading}</p>
  const { text, total } = data
  const isCut = total > MAX_BYTES
  return (
    <>
      {isCut && <Note>{words.textCut(bytes(MAX_BYTES), bytes(total))}</Note>}
      <section
        aria-label={words.of(name)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        className="max-h-[28rem] overflow-auto rounded-lg border border-line p-4"
      >
        {form === 'markdown' ? <Markdown text={text} /> : <Rows text={text} isCut={isCut} />}
      </section>
    </>
  )
}

/** A CSV as a table. Its first row is the header. */
function Rows({ text, isCut }: { text: string; isCut: boolean }) {
  // The header, one row more than is shown, and one row that may be cut.
  const { data } = parse<string[]>(text, { skipEmptyLines: true, preview: MAX_ROWS + 3 })
  // The last row of a truncated text may be incomplete.
  const [head = [], ...rows] = isCut ? data.slice(0, -1) : data
  return (
    <>
      <table className="border-collapse text-sm [&_td]:border [&_td]:border-line [&_td]:px-2 [&_td]:py-1 [&_th]:border [&_th]:border-line [&_th]:px-2 [&_th]:py-1 [&_th]:text-left">
        <thead>
          <tr>
            {head.map((cell, column) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table do not move
              <th key={column} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MAX_ROWS).map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a table do not move
            <tr key={index}>
              {row.map((cell, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table do not move
                <td key={column}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > MAX_ROWS && <p className="mt-3 text-soft text-sm">{words.rowsCut(MAX_ROWS)}</p>}
    </>
  )
}
