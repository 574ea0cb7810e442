import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { bytes } from '../../../parts/format.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Button, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { readContents, save } from './contents.ts'

const { agentFiles: words } = texts
const TextFile = lazy(() => import('./TextFile.tsx').then(({ TextFile }) => ({ default: TextFile })))

/** A file: an editor for text, the picture of an image, the type of any other. */
export function FileView({ agentId, path, onGone }: { agentId: string; path: string; onGone: () => void }) {
  // The file is not refetched during editing: a save detects whether somebody else has changed it.
  const { data, error } = useQuery({
    queryKey: ['file', agentId, path],
    queryFn: () => readContents(agentId, path),
    enabled: (query) => query.state.data === undefined,
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  const [isGoing, setGoing] = useState(false)
  const download = useMutation({ mutationFn: () => save(agentId, path) })
  return (
    <section aria-label={path} className="flex h-full min-w-0 flex-col">
      <header className="flex flex-wrap items-center justify-between gap-2 border-line border-b px-3 py-2">
        <code className="min-w-0 break-all text-sm">{path}</code>
        <div className="flex gap-2">
          <Button onClick={() => download.mutate()}>{words.download}</Button>
          <Button changes onClick={() => setGoing(true)}>
            {words.remove}
          </Button>
        </div>
      </header>
      <Problem error={error ?? download.error} />
      <div className="min-h-0 flex-1 overflow-auto">
        {!data && !error && <p className="p-4 text-soft text-sm">{texts.loading}</p>}
        {data?.kind === 'text' && (
          <Suspense fallback={<p className="p-4 text-soft text-sm">{texts.loading}</p>}>
            <TextFile key={path} agentId={agentId} path={path} found={data} />
          </Suspense>
        )}
        {data?.kind === 'image' && <img src={data.url} alt={path} className="m-auto max-h-full p-4" />}
        {data?.kind === 'binary' && <p className="p-4 text-soft text-sm">{words.binary(bytes(data.size))}</p>}
        {data?.kind === 'large' && <p className="p-4 text-soft text-sm">{words.large(bytes(data.size))}</p>}
      </div>
      {isGoing && (
        <DeleteFile agentId={agentId} path={path} onGone={onGone} onClose={() => setGoing(false)} />
      )}
    </section>
  )
}

function DeleteFile({
  agentId,
  path,
  onGone,
  onClose,
}: {
  agentId: string
  path: string
  onGone: () => void
  onClose: () => void
}) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE('/v0/agents/{agentId}/files', { params: { path: { agentId }, query: { path } } })),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: ['agents', agentId, 'files'] })
      onClose()
      onGone()
    },
  })
  return (
    <FormDialog
      title={words.removeTitle}
      hint={words.removeHint(path)}
      submit={words.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
