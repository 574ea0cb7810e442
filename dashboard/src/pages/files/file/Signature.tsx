import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'
import { Copy } from '../../../parts/copy.tsx'
import { AskedButton } from '../../../parts/forms.tsx'
import { Card } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { FileRecord, Network } from '../files.ts'
import { useDetails } from './details.ts'

const words = texts.files.signature

/** The signature of a file's CID; nothing if it has none. */
export function Signature({ file, network }: { file: FileRecord; network: Network }) {
  const queries = useQueryClient()
  const params = { path: { network, cid: file.cid } }
  const path = '/v3/files/{network}/signature/{cid}' as const
  const data = useDetails(network, file).data?.signature
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE(path, { params })),
    onSuccess: () => queries.invalidateQueries(),
  })
  if (!data) return null
  return (
    <Card title={words.title}>
      <p className="text-soft text-sm">{words.hint}</p>
      <p className="mt-2 break-all text-sm">
        {words.by} <code className="text-xs">{data.address}</code>
      </p>
      <code className="mt-2 line-clamp-3 break-all text-soft text-xs">{data.signature}</code>
      <div className="mt-3 flex gap-2">
        <Copy text={data.signature} />
        <AskedButton
          label={words.remove}
          title={words.removeTitle}
          hint={words.removeHint}
          saving={remove}
          onConfirm={() => remove.mutate()}
        />
      </div>
    </Card>
  )
}
