import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { RequestError } from '../../../api/client.ts'
import { Button, Problem } from '../../../parts/ui.tsx'
import { Unsaved } from '../../../parts/unsaved.tsx'
import { texts } from '../../../texts.ts'
import { type Contents, readContents, writeContents } from './contents.ts'
import { openEditor } from './editor.ts'

const { agentFiles: words } = texts

interface Seen {
  text: string
  etag: string
}

/** An editor for a text file. If somebody else has changed the file, a save shows the difference instead. */
export function TextFile({ agentId, path, found }: { agentId: string; path: string; found: Seen }) {
  const queries = useQueryClient()
  const [seen, setSeen] = useState(found)
  const [text, setText] = useState(found.text)
  const [theirs, setTheirs] = useState<Seen>()
  const save = useMutation({
    async mutationFn({ text, etag }: Seen): Promise<Seen> {
      return { text, etag: await writeContents(agentId, path, text, etag) }
    },
    // Text typed during the save is not saved yet.
    onSuccess(saved) {
      setSeen(saved)
      setTheirs(undefined)
      const now: Contents = { kind: 'text', ...saved }
      queries.setQueryData(['file', agentId, path], now)
    },
    async onError(error) {
      if (!(error instanceof RequestError && error.status === 412)) return
      const now = await readContents(agentId, path).catch(() => undefined)
      if (now?.kind === 'text') setTheirs(now)
    },
  })
  /** Counts texts taken over from the server: each opens a new editor. A save keeps the editor and its cursor. */
  const [taken, setTaken] = useState(0)
  const isChanged = text !== seen.text
  const store = () => {
    if (!save.isPending) save.mutate({ text, etag: (theirs ?? seen).etag })
  }
  const take = () => {
    if (!theirs) return
    setSeen(theirs)
    setText(theirs.text)
    setTheirs(undefined)
    setTaken(taken + 1)
    save.reset()
  }
  return (
    <div className="flex h-full flex-col">
      <Unsaved isOn={isChanged} />
      {theirs ? (
        <div role="alert" className="border-line border-b bg-tint p-3 text-sm">
          <p className="font-medium">{words.changed}</p>
          <p className="mb-2 text-soft">{words.changedHint}</p>
          <div className="flex flex-wrap gap-2">
            <Button onClick={take}>{words.takeTheirs}</Button>
            <Button changes look="main" disabled={save.isPending} onClick={store}>
              {words.keepMine}
            </Button>
          </div>
        </div>
      ) : (
        <Problem error={save.error} />
      )}
      <Editor
        key={`${taken} ${theirs?.etag}`}
        path={path}
        text={text}
        original={theirs?.text}
        onChange={setText}
        onSave={store}
      />
      <div className="flex items-center justify-between gap-2 border-line border-t px-3 py-2">
        <p role="status" className="text-soft text-sm">
          {isChanged ? words.unsaved : save.isSuccess ? words.saved : ''}
        </p>
        <Button
          changes
          look="main"
          disabled={!isChanged || save.isPending || theirs !== undefined}
          onClick={store}
        >
          {words.save}
        </Button>
      </div>
    </div>
  )
}

function Editor({
  path,
  text,
  original,
  onChange,
  onSave,
}: {
  path: string
  text: string
  original: string | undefined
  onChange: (text: string) => void
  onSave: () => void
}) {
  const place = useRef<HTMLDivElement>(null)
  const latest = useRef({ onChange, onSave, text })
  latest.current = { onChange, onSave, text }
  useEffect(() => {
    if (!place.current) return
    return openEditor({
      place: place.current,
      path,
      text: latest.current.text,
      label: path,
      ...(original !== undefined && { original }),
      onChange: (changed) => latest.current.onChange(changed),
      onSave: () => latest.current.onSave(),
    })
  }, [path, original])
  return <div ref={place} className="min-h-0 flex-1 overflow-auto" />
}
