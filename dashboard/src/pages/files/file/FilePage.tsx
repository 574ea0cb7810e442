import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { shorten } from '../../../parts/format.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Button, PageHead, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { changeFile, type FileRecord, type Network } from '../files.ts'
import { Facts } from './Facts.tsx'
import { Links } from './Links.tsx'
import { Pairs } from './Pairs.tsx'
import { Preview } from './Preview.tsx'
import { Signature } from './Signature.tsx'
import { Swaps } from './Swaps.tsx'

const words = texts.files.file

/** The page of a file: its properties, its links, and the actions on it. */
export function FilePage() {
  const params = useParams({ from: '/shell/dashboard/files/$network/$fileId' })
  const network: Network = params.network === 'private' ? 'private' : 'public'
  const id = params.fileId
  const { data, error } = useQuery({
    queryKey: ['file', network, id],
    queryFn: () => unwrap(api.GET('/v3/files/{network}/{id}', { params: { path: { network, id } } })),
  })
  const file = data?.data
  return (
    <>
      <Link
        to="/dashboard/files"
        search={network === 'private' ? { network } : {}}
        className="mb-2 inline-block text-soft text-sm hover:text-ink"
      >
        ← {texts.files.title}
      </Link>
      {!file && (error ? <PageHead title={words.lost} /> : <h1 className="sr-only">{texts.loading}</h1>)}
      <Problem error={error} />
      {file && <OneFile key={file.id} file={file} network={network} />}
    </>
  )
}

function OneFile({ file, network }: { file: FileRecord; network: Network }) {
  const [open, setOpen] = useState<'rename' | 'delete'>()
  const title = file.name ?? texts.files.unnamed
  return (
    <>
      {open === 'rename' ? (
        <Rename file={file} network={network} onDone={() => setOpen(undefined)} />
      ) : (
        <PageHead title={title}>
          <Button changes onClick={() => setOpen('rename')}>
            {words.rename}
          </Button>
          <Button changes onClick={() => setOpen('delete')}>
            {texts.files.remove}
          </Button>
        </PageHead>
      )}
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="min-w-0 space-y-4">
          <Preview file={file} network={network} />
          <Swaps key={file.cid} file={file} network={network} />
        </div>
        <div className="min-w-0 space-y-4">
          <Facts file={file} network={network} />
          <Links file={file} network={network} />
          <Pairs file={file} network={network} />
          <Signature file={file} network={network} />
        </div>
      </div>
      {open === 'delete' && <Delete file={file} network={network} onClose={() => setOpen(undefined)} />}
    </>
  )
}

function Rename({ file, network, onDone }: { file: FileRecord; network: Network; onDone: () => void }) {
  const [name, setName] = useState(file.name ?? '')
  const saving = useChange((name: string | null) => changeFile(network, file.id, { name }))
  const send = (event: FormEvent) => {
    event.preventDefault()
    saving.mutate(name || null, { onSuccess: onDone })
  }
  return (
    <form
      onSubmit={send}
      onKeyDown={(event) => event.key === 'Escape' && onDone()}
      className="mb-6 space-y-2"
    >
      <h1 className="sr-only">{words.renameTitle(file.name ?? texts.files.unnamed)}</h1>
      <div className="flex flex-wrap gap-2">
        <input
          aria-label={texts.files.columns.name}
          // biome-ignore lint/a11y/noAutofocus: the person has just asked for it
          autoFocus
          value={name}
          maxLength={255}
          onChange={(event) => setName(event.target.value)}
          className="min-w-0 flex-1 rounded-lg border border-line bg-card px-3 py-1.5 font-semibold text-xl"
        />
        <Button look="main" type="submit" disabled={saving.isPending}>
          {words.save}
        </Button>
        <Button onClick={onDone}>{texts.cancel}</Button>
      </div>
      <Problem error={saving.error} />
    </form>
  )
}

function Delete({ file, network, onClose }: { file: FileRecord; network: Network; onClose: () => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const name = file.name ?? shorten(file.cid)
  const remove = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE('/v3/files/{network}/{id}', { params: { path: { network, id: file.id } } })),
    async onSuccess() {
      await navigate({ to: '/dashboard/files', search: network === 'private' ? { network } : {} })
      await queries.invalidateQueries()
    },
  })
  return (
    <FormDialog
      title={texts.files.removeTitle}
      hint={texts.files.removeHint(name)}
      submit={texts.files.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
