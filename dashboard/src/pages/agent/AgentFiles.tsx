import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type ChangeEvent, type DragEvent, useRef, useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { FormDialog } from '../../parts/forms.tsx'
import { useMayChange } from '../../parts/rights.tsx'
import { Button, Empty, Field, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { writeContents } from './files/contents.ts'
import { FileView } from './files/FileView.tsx'
import { Folder } from './files/Tree.tsx'

const { agentFiles: words } = texts
/** The folder for dropped files. */
const UPLOADS = 'workspace/uploads'

/** The files below the agent's root: a tree, and the selected file. */
export function AgentFiles() {
  const { agentId } = useAgent()
  const queries = useQueryClient()
  const { file: chosen } = useSearch({ from: '/shell/dashboard/agents/$agentId/files' })
  const go = useNavigate({ from: '/dashboard/agents/$agentId/files' })
  const choose = (file: string) => void go({ search: { file }, replace: true })
  // The file is deleted, so do not ask about unsaved input.
  const close = () => void go({ search: {}, replace: true, ignoreBlocker: true })
  const [isNew, setNew] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const mayChange = useMayChange()
  const upload = useMutation({
    async mutationFn(files: File[]) {
      for (const file of files) await writeContents(agentId, `${UPLOADS}/${file.name}`, file, undefined)
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['agents', agentId, 'files'] }),
  })
  const drop = (event: DragEvent) => {
    if (!mayChange) return
    event.preventDefault()
    upload.mutate([...event.dataTransfer.files])
  }
  const send = (event: ChangeEvent<HTMLInputElement>) => {
    upload.mutate([...(event.target.files ?? [])])
    event.target.value = ''
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button offers the same without drag and drop
    <div onDragOver={(event) => mayChange && event.preventDefault()} onDrop={drop} className="space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <Button changes onClick={() => setNew(true)}>
          {words.create}
        </Button>
        <Button changes disabled={upload.isPending} onClick={() => input.current?.click()}>
          {upload.isPending ? words.uploading : words.upload}
        </Button>
        {mayChange && <input ref={input} type="file" multiple hidden onChange={send} />}
        {mayChange && <p className="text-soft text-sm">{words.uploadHint(UPLOADS)}</p>}
      </div>
      <Problem error={upload.error} />
      <div className="grid overflow-hidden rounded-xl border border-line bg-card md:h-[68dvh] md:grid-cols-[17rem_1fr]">
        <nav
          aria-label={words.title}
          className="max-h-72 overflow-auto border-line border-b p-2 md:max-h-none md:border-r md:border-b-0"
        >
          <Folder agentId={agentId} path="" chosen={chosen} onChoose={choose} />
        </nav>
        <div className="h-[60dvh] min-w-0 md:h-auto md:min-h-0">
          {chosen ? (
            <FileView key={chosen} agentId={agentId} path={chosen} onGone={close} />
          ) : (
            <div className="p-6">
              <Empty changes title={words.none} hint={words.noneHint} />
            </div>
          )}
        </div>
      </div>
      {isNew && <NewFile agentId={agentId} onMade={choose} onClose={() => setNew(false)} />}
    </div>
  )
}

function NewFile({
  agentId,
  onMade,
  onClose,
}: {
  agentId: string
  onMade: (path: string) => void
  onClose: () => void
}) {
  const queries = useQueryClient()
  const [path, setPath] = useState('workspace/')
  const create = useMutation({
    mutationFn: () => writeContents(agentId, path, '', null),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: ['agents', agentId, 'files'] })
      onClose()
      onMade(path)
    },
  })
  return (
    <FormDialog
      title={words.create}
      hint={words.createHint}
      submit={words.submit}
      saving={create}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field label={words.path} required value={path} onChange={(event) => setPath(event.target.value)} />
    </FormDialog>
  )
}
