import { useQuery } from '@tanstack/react-query'
import { useMayChange } from '../../../parts/rights.tsx'
import { Card } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { addressOf, type FileRecord, linkTo, type Network, useGateways } from '../files.ts'
import { useHistory } from './swap-history.ts'

const words = texts.files.preview
/** Long enough to look at it. */
const LINK_SECONDS = 900
const SHOWN = /^(image|video|audio|text)\/|^application\/(pdf|json|javascript|xml)$|^directory$/
const PDF = 'application/pdf'

/**
 * Shows content in a frame of the workspace's gateway, which is another origin than this page; what is shown may be anybody's.
 * The frame has no right to run scripts, but for PDF: browsers do not show one there.
 */
export function Preview({ file, network }: { file: FileRecord; network: Network }) {
  const { mime_type, cid, name } = file
  const { gateways, data } = useGateways()
  const gateway = gateways.find(({ restrict }) => network === 'private' || !restrict)
  const isShown = SHOWN.test(mime_type)
  const mayRead = useMayChange() || network === 'public'
  const host = isShown && mayRead ? gateway?.host : undefined
  const swaps = useHistory(network, cid)
  // Behind a swap the same CID has other content, which browsers keep for a minute: they ask anew for another address.
  const swapped = swaps.data?.[0]?.created_at
  const address = useQuery({
    queryKey: ['preview', network, cid, host, swapped],
    enabled: host !== undefined && !swaps.isLoading,
    // A link that is made again is another address, and would load again what is looked at.
    staleTime: 'static',
    queryFn: () =>
      network === 'private'
        ? linkTo(host ?? '', cid, LINK_SECONDS)
        : `${addressOf(host ?? '')}/ipfs/${cid}${swapped ? `?swapped=${encodeURIComponent(swapped)}` : ''}`,
  })
  return (
    <Card title={words.title}>
      {address.data ? (
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
          {isShown
            ? mayRead
              ? data && !gateway && words.noGateway
              : words.noLink
            : words.noPreview(texts.files.types[mime_type] ?? mime_type)}
        </p>
      )}
    </Card>
  )
}
