import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { ago, bytes, shorten } from '../../parts/format.ts'
import { Button, Copy, Modal, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import type { Network } from './Files.tsx'

interface File {
  id: string
  name: string | null
  cid: string
  size: number
  created_at: string
  keyvalues: Record<string, string>
}

export function FileTable({ files, network }: { files: File[]; network: Network }) {
  const [removed, setRemoved] = useState<File>()
  const [linked, setLinked] = useState<File>()
  const { columns } = texts.files
  return (
    <div className="overflow-x-auto rounded-xl border border-line bg-card">
      <table className="w-full text-left text-sm">
        <thead className="border-line border-b text-soft">
          <tr>
            <th className="px-4 py-3 font-medium">{columns.name}</th>
            <th className="hidden px-4 py-3 font-medium md:table-cell">{columns.cid}</th>
            <th className="px-4 py-3 text-right font-medium">{columns.size}</th>
            <th className="hidden px-4 py-3 font-medium md:table-cell">{columns.added}</th>
            <th className="px-4 py-3">
              <span className="sr-only">{columns.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {files.map((file) => (
            <tr key={file.id}>
              <td className="w-full max-w-0 px-4 py-3">
                <p className="truncate font-medium">{file.name ?? texts.files.unnamed}</p>
                {Object.entries(file.keyvalues).map(([key, value]) => (
                  <span
                    key={key}
                    className="mr-1.5 inline-block max-w-full truncate rounded bg-tint px-1.5 text-xs"
                  >
                    {key}: {value}
                  </span>
                ))}
              </td>
              <td className="hidden whitespace-nowrap px-4 py-3 md:table-cell">
                <code title={file.cid}>{shorten(file.cid)}</code>
              </td>
              <td className="whitespace-nowrap px-4 py-3 text-right tabular-nums">{bytes(file.size)}</td>
              <td className="hidden whitespace-nowrap px-4 py-3 text-soft md:table-cell">
                {ago(file.created_at)}
              </td>
              <td className="whitespace-nowrap px-4 py-3 text-right">
                {network === 'private' && (
                  <Button className="mr-2" onClick={() => setLinked(file)}>
                    {texts.files.link}
                  </Button>
                )}
                <Button onClick={() => setRemoved(file)}>{texts.files.remove}</Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {removed && <RemoveDialog file={removed} network={network} onClose={() => setRemoved(undefined)} />}
      {linked && <LinkDialog file={linked} onClose={() => setLinked(undefined)} />}
    </div>
  )
}

function RemoveDialog({ file, network, onClose }: { file: File; network: Network; onClose: () => void }) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE('/v3/files/{network}/{id}', { params: { path: { network, id: file.id } } })),
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  return (
    <Modal title={texts.files.removeTitle} onClose={onClose}>
      <p className="break-words text-soft text-sm">{texts.files.removeHint(file.name ?? file.cid)}</p>
      <Problem error={remove.error} />
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {texts.files.remove}
        </Button>
      </div>
    </Modal>
  )
}

const HOUR_SECONDS = 3600

function LinkDialog({ file, onClose }: { file: File; onClose: () => void }) {
  const make = useMutation({
    async mutationFn() {
      const { data } = await unwrap(api.GET('/v3/gateways'))
      const host = data.rows[0]?.host
      if (!host) throw new Error(texts.files.noGateway)
      const body = {
        url: `https://${host}/files/${file.cid}`,
        method: 'GET' as const,
        date: Math.floor(Date.now() / 1000),
        expires: HOUR_SECONDS,
      }
      return (await unwrap(api.POST('/v3/files/private/download_link', { body }))).data
    },
  })
  return (
    <Modal title={texts.files.linkTitle} onClose={onClose}>
      <p className="text-soft text-sm">{texts.files.linkHint}</p>
      <Problem error={make.error} />
      {make.data && <p className="mt-3 break-all rounded-lg bg-page p-3 font-mono text-xs">{make.data}</p>}
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={onClose}>{texts.close}</Button>
        {make.data ? (
          <Copy text={make.data} />
        ) : (
          <Button look="main" disabled={make.isPending} onClick={() => make.mutate()}>
            {texts.files.makeLink}
          </Button>
        )}
      </div>
    </Modal>
  )
}
