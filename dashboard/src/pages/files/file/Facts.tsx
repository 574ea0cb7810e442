import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Copy } from '../../../parts/copy.tsx'
import { bytes } from '../../../parts/format.ts'
import { Fields } from '../../../parts/rights.tsx'
import { Time } from '../../../parts/time.tsx'
import { Card, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type FileRecord, moveTo, type Network, useGroups } from '../files.ts'
import { useDetails } from './details.ts'

const words = texts.files.file

/** The properties of a file, and its group. */
export function Facts({ file, network }: { file: FileRecord; network: Network }) {
  const { cid, size, mime_type, number_of_files, created_at, expires_at } = file
  return (
    <Card title={words.facts}>
      <div className="mb-3 flex items-start gap-2">
        <code className="min-w-0 flex-1 break-all text-xs">{cid}</code>
        <Copy text={cid} />
      </div>
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] items-center gap-y-2 text-sm">
        <Fact name={texts.files.network}>{texts.files[network]}</Fact>
        <Fact name={words.pin}>
          <PinState id={file.id} />
        </Fact>
        <Replicas file={file} network={network} />
        <Fact name={texts.files.columns.size}>{bytes(size)}</Fact>
        <Fact name={texts.files.columns.type}>{texts.files.types[mime_type] ?? mime_type}</Fact>
        {mime_type === 'directory' && (
          <Fact name={words.contains}>{texts.files.upload.filesIn(number_of_files)}</Fact>
        )}
        <Fact name={texts.files.columns.added}>
          <Time at={created_at} />
        </Fact>
        {expires_at !== null && (
          <Fact name={words.expires}>
            <Time at={expires_at * 1000} />
          </Fact>
        )}
        <Fact name={texts.files.group}>
          <Fields>
            <GroupSelect file={file} network={network} />
          </Fields>
        </Fact>
      </dl>
    </Card>
  )
}

/** The peers of IPFS Cluster that keep the file, or should; nothing without IPFS Cluster. */
function Replicas({ file, network }: { file: FileRecord; network: Network }) {
  const replicas = useDetails(network, file).data?.replicas
  if (!replicas) return null
  const pinned = replicas.peers.filter(({ status }) => status === 'pinned')
  return (
    <Fact name={words.replicas}>
      {words.ofWanted(pinned.length, replicas.wanted)}
      <ul className="mt-1 space-y-1">
        {replicas.peers.map(({ name, status, error }) => (
          <li key={name} title={error ?? undefined}>
            <State state={status} label={name} />
          </li>
        ))}
      </ul>
    </Fact>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  )
}

/** The pin of a file. If its node lost the pin, an operation repairs it. */
function PinState({ id }: { id: string }) {
  const { data } = useQuery({
    queryKey: ['operations', id],
    queryFn: () =>
      unwrap(api.GET('/v0/operations', { params: { query: { target: id, kind: 'pin.repair', limit: 1 } } })),
  })
  const repair = data?.data.operations[0]
  const isRepaired = repair?.state === 'queued' || repair?.state === 'running'
  return isRepaired ? (
    <State state="queued" label={words.repaired} />
  ) : (
    <State state="pinned" label={words.pinned} />
  )
}

function GroupSelect({ file, network }: { file: FileRecord; network: Network }) {
  const { groups } = useGroups(network)
  const queries = useQueryClient()
  const move = useMutation({
    mutationFn: (group: string) => moveTo(network, file, group || null),
    onSettled: () => queries.invalidateQueries(),
  })
  const isKnown = groups.some(({ id }) => id === file.group_id)
  return (
    <>
      <select
        aria-label={texts.files.group}
        value={file.group_id ?? ''}
        disabled={move.isPending}
        onChange={(event) => move.mutate(event.target.value)}
        className="w-full rounded-lg border border-line bg-page px-2 py-1.5"
      >
        <option value="">{texts.files.noGroup}</option>
        {file.group_id && !isKnown && <option value={file.group_id}>{file.group_id}</option>}
        {groups.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <Problem error={move.error} />
    </>
  )
}
