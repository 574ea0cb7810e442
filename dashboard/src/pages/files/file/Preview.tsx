import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Card } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { addressOf, type FileRecord, type Network, useGateways } from '../files.ts'
import { useDetails } from './details.ts'
import { Folder } from './tree/Folder.tsx'

const Archive = lazy(async () => ({ default: (await import('./tree/Archive.tsx')).Archive }))
const Reading = lazy(async () => ({ default: (await import('./Reading.tsx')).Reading }))

const words = texts.files.preview
const FRAMED = /^(video|audio|text)\/|^application\/(pdf|json|javascript|xml)$/
const PDF = 'application/pdf'
const CAR = 'application/vnd.ipld.car'

type Form = 'folder' | 'archive' | 'image' | 'markdown' | 'table' | 'frame' | 'none'

/** The form of the preview. Markdown and CSV often have the type of plain text, so their names decide. */
function formOf({ mime_type: type, name }: FileRecord): Form {
  const hasName = (pattern: RegExp) => pattern.test(name ?? '')
  if (type === 'directory') return 'folder'
  if (type === CAR || hasName(/\.car$/i)) return 'archive'
  if (type.startsWith('image/')) return 'image'
  if (type === 'text/markdown' || (type === 'text/plain' && hasName(/\.(md|markdown)$/i))) return 'markdown'
  if (/^text\/(csv|tab-separated-values)$/.test(type) || (type === 'text/plain' && hasName(/\.[ct]sv$/i)))
    return 'table'
  return FRAMED.test(type) ? 'frame' : 'none'
}

/**
 * Shows content from the workspace's gateway. The content is untrusted, so the gateway has a different origin than this
 * page, and the frame may not run scripts, except for PDF, which browsers do not show otherwise. Images, including SVG,
 * run no scripts. Folders and CARs are shown as trees.
 */
export function Preview({ file, network }: { file: FileRecord; network: Network }) {
  const { id, mime_type, cid, name } = file
  const { gateways, data } = useGateways()
  const gateway = gateways.find(({ restrict }) => network === 'private' || !restrict)
  const details = useDetails(network, file)
  // After a swap the same CID has other content, and browsers cache for a minute: a new URL makes them ask again.
  const swapped = details.data?.swaps[0]?.created_at
  const form = formOf(file)
  const open = gateway && network === 'public' ? `${addressOf(gateway.host)}/ipfs/${cid}` : undefined
  const locate = async () => {
    if (network === 'public') return `${open}${swapped ? `?swapped=${encodeURIComponent(swapped)}` : ''}`
    const { data } = await unwrap(api.GET('/v0/files/private/{id}/link', { params: { path: { id } } }))
    return data
  }
  const isReadable = gateway !== undefined && !details.isLoading
  const [isBroken, setBroken] = useState(false)
  const read = { cid, name: name ?? cid, version: swapped, locate }
  const address = useQuery({
    queryKey: ['preview', network, cid, gateway?.host, swapped],
    enabled: (form === 'image' || form === 'frame') && isReadable,
    // A new link has a different URL, which would reload the preview.
    staleTime: 'static',
    queryFn: locate,
  })
  return (
    <Card title={words.title}>
      {form === 'folder' ? (
        <Folder file={file} network={network} address={open} />
      ) : isReadable && (form === 'archive' || form === 'markdown' || form === 'table') ? (
        <Suspense fallback={<p className="text-soft text-sm">{texts.loading}</p>}>
          {form === 'archive' ? <Archive {...read} /> : <Reading {...read} form={form} />}
        </Suspense>
      ) : address.data && form === 'image' && !isBroken ? (
        <img
          src={address.data}
          alt={words.of(name ?? cid)}
          referrerPolicy="no-referrer"
          // Browsers do not support every image type.
          onError={() => setBroken(true)}
          // Shows transparent parts on white, as browsers do.
          className="mx-auto max-h-[28rem] max-w-full rounded-lg border border-line bg-white object-contain"
        />
      ) : address.data && form === 'frame' ? (
        <iframe
          title={words.of(name ?? cid)}
          src={address.data}
          {...(mime_type !== PDF && { sandbox: '' })}
          referrerPolicy="no-referrer"
          // Otherwise the browser shows plain text in the colours of the colour scheme.
          className="scheme-light h-[28rem] w-full rounded-lg border border-line bg-white"
        />
      ) : (
        <p className="rounded-lg border border-line border-dashed px-4 py-10 text-center text-soft text-sm">
          {form === 'none' || isBroken
            ? words.noPreview(texts.files.types[mime_type] ?? mime_type)
            : (address.error?.message ?? (data && !gateway && words.noGateway))}
        </p>
      )}
    </Card>
  )
}
