import { type FormEvent, useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { Fields } from '../../../parts/rights.tsx'
import { Button, Card, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { changeFile, type FileRecord, type Network } from '../files.ts'

const words = texts.files.file
/** The API's limit. */
const MOST = 10
const BOX = 'min-w-0 flex-1 rounded-lg border border-line bg-page px-2.5 py-1.5 text-sm'

interface Pair {
  id: number
  key: string
  value: string
}

/** The metadata of a file, edited in place. */
export function Pairs({ file, network }: { file: FileRecord; network: Network }) {
  /** The unsaved input, and the metadata that it is based on: other clients may change the file during editing. */
  const [draft, setDraft] = useState<{ pairs: Pair[]; before: Record<string, string> }>()
  const before = draft?.before ?? file.keyvalues
  const pairs = draft?.pairs ?? Object.entries(before).map(([key, value], id) => ({ id, key, value }))
  const setPairs = (pairs: Pair[]) => setDraft({ pairs, before })
  const saving = useChange((keyvalues: Record<string, string | null>) =>
    changeFile(network, file.id, { keyvalues }),
  )
  const kept = Object.fromEntries(pairs.filter(({ key }) => key).map(({ key, value }) => [key, value]))
  const isChanged = !isSame(kept, before) || pairs.some(({ key }) => !key)
  const twice = pairs.find(
    ({ key }, index) => key && pairs.findIndex((pair) => pair.key === key) < index,
  )?.key
  const change = (id: number, changes: Partial<Pair>) =>
    setPairs(pairs.map((pair) => (pair.id === id ? { ...pair, ...changes } : pair)))
  const save = (event: FormEvent) => {
    event.preventDefault()
    // The API keeps keys that a change leaves out, so removed ones are sent as null.
    const gone = Object.keys(before).filter((key) => !(key in kept))
    const changed = Object.entries(kept).filter(([key, value]) => value !== before[key])
    const keyvalues = {
      ...Object.fromEntries(gone.map((key) => [key, null])),
      ...Object.fromEntries(changed),
    }
    // Input typed during the save is a change to the metadata that was sent.
    const onSuccess = () =>
      setDraft((now) => (now && now.pairs !== pairs ? { pairs: now.pairs, before: kept } : undefined))
    saving.mutate(keyvalues, { onSuccess })
  }
  return (
    <Card title={words.pairs}>
      <form onSubmit={save}>
        <Fields className="space-y-2">
          {pairs.length === 0 && <p className="text-soft text-sm">{words.noPairs}</p>}
          {pairs.map(({ id, key, value }, index) => (
            <div key={id} className="flex gap-2">
              <input
                aria-label={words.keyOf(index + 1)}
                placeholder={words.key}
                required
                // biome-ignore lint/a11y/noAutofocus: the person has just asked for it
                autoFocus={!key && !value}
                value={key}
                onChange={(event) => change(id, { key: event.target.value })}
                className={BOX}
              />
              <input
                aria-label={words.valueOf(index + 1)}
                placeholder={words.value}
                value={value}
                onChange={(event) => change(id, { value: event.target.value })}
                className={BOX}
              />
              <Button
                changes
                aria-label={words.removePair(key)}
                onClick={() => setPairs(pairs.filter((pair) => pair.id !== id))}
              >
                ×
              </Button>
            </div>
          ))}
          {twice && (
            <p role="alert" className="text-bad text-sm">
              {words.twice(twice)}
            </p>
          )}
          <Problem error={saving.error} />
          <div className="flex gap-2">
            <Button
              changes
              disabled={pairs.length >= MOST}
              onClick={() =>
                setPairs([
                  ...pairs,
                  { id: Math.max(-1, ...pairs.map(({ id }) => id)) + 1, key: '', value: '' },
                ])
              }
            >
              {words.addPair}
            </Button>
            {isChanged && (
              <Button changes look="main" type="submit" disabled={Boolean(twice) || saving.isPending}>
                {words.save}
              </Button>
            )}
          </div>
        </Fields>
      </form>
    </Card>
  )
}

function isSame(a: Record<string, string>, b: Record<string, string>): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}
