import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, RequestError, unwrap } from '../../../api/client.ts'
import { Copy } from '../../../parts/copy.tsx'
import { AskedButton } from '../../../parts/forms.tsx'
import { Card } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { Network } from '../files.ts'

const words = texts.files.signature

/** The signature of a CID; nothing where it has none. */
export function Signature({ cid, network }: { cid: string; network: Network }) {
  const queries = useQueryClient()
  const params = { path: { network, cid } }
  const path = '/v3/files/{network}/signature/{cid}' as const
  const { data } = useQuery({
    queryKey: ['signature', network, cid],
    queryFn: async () => {
      try {
        return (await unwrap(api.GET(path, { params }))).data
      } catch (error) {
        if (error instanceof RequestError && error.status === 404) return null
        throw error
      }
    },
  })
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
