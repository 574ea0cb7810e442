import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Card } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { addressOf, type FileRecord, type Network, useGateways } from '../files.ts'
import { useHistory } from './swap-history.ts'
import { Folder } from './tree/Folder.tsx'

const Archive = lazy(async () => ({ default: (await import('./tree/Archive.tsx')).Archive }))

const words = texts.files.preview
const FRAMED = /^(image|video|audio|text)\/|^application\/(pdf|json|javascript|xml)$/
const PDF = 'application/pdf'
const CAR = 'application/vnd.ipld.car'

/**
 * Shows content in a frame of the workspace's gateway, which is another origin than this page; what is shown may be anybody's.
 * The frame has no right to run scripts, but for PDF: browsers do not show one there. Of folders and CARs it shows the tree.
 */
export function Preview({ file, network }: { file: FileRecord; network: Network }) {
  const { id, mime_type, cid, name } = file
  const { gateways, data } = useGateways()
  const gateway = gateways.find(({ restrict }) => network === 'private' || !restrict)
  const swaps = useHistory(network, cid)
  // Behind a swap the same CID has other content, which browsers keep for a minute: they ask anew for another address.
  const swapped = swaps.data?.[0]?.created_at
  const isFolder = mime_type === 'directory'
  const isArchive = !isFolder && (mime_type === CAR || /\.car$/i.test(name ?? ''))
  const isFramed = FRAMED.test(mime_type) && !isArchive
  const open = gateway && network === 'public' ? `${addressOf(gateway.host)}/ipfs/${cid}` : undefined
  const locate = async () => {
    if (network === 'public') return `${open}${swapped ? `?swapped=${encodeURIComponent(swapped)}` : ''}`
    const { data } = await unwrap(api.GET('/v0/files/private/{id}/link', { params: { path: { id } } }))
    return data
  }
  const isReadable = gateway !== undefined && !swaps.isLoading
  const address = useQuery({
    queryKey: ['preview', network, cid, gateway?.host, swapped],
    enabled: isFramed && isReadable,
    // A link that is made again is another address, and would load again what is looked at.
    staleTime: 'static',
    queryFn: locate,
  })
  return (
    <Card title={words.title}>
      {isFolder ? (
        <Folder file={file} network={network} address={open} />
      ) : isArchive && isReadable ? (
        <Suspense fallback={<p className="text-soft text-sm">{texts.loading}</p>}>
          <Archive cid={cid} name={name ?? cid} version={swapped} locate={locate} />
        </Suspense>
      ) : address.data ? (
        <iframe
          title={words.of(name ?? cid)}
          src={address.data}
          {...(mime_type !== PDF && { sandbox: '' })}
          referrerPolicy="no-referrer"
          // The browser writes plain text in the colours of the scheme.
          className="scheme-light h-[28rem] w-full rounded-lg border border-line bg-white"
        />
      ) : (
        <p className="rounded-lg border border-line border-dashed px-4 py-10 text-center text-soft text-sm">
          {isFramed || isArchive
            ? (address.error?.message ?? (data && !gateway && words.noGateway))
            : words.noPreview(texts.files.types[mime_type] ?? mime_type)}
        </p>
      )}
    </Card>
  )
}
