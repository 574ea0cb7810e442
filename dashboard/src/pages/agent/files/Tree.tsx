import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { bytes } from '../../../parts/format.ts'
import { moveInTree, TREE_ROW } from '../../../parts/tree-keys.ts'
import { Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const { agentFiles: words } = texts

interface Choice {
  agentId: string
  chosen: string | undefined
  onChoose: (path: string) => void
}

/** A folder's entries, folders first. Each folder is read when it is opened. */
export function Folder({ path, ...choice }: Choice & { path: string }) {
  const { agentId } = choice
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'files', path],
    queryFn: () =>
      unwrap(api.GET('/v0/agents/{agentId}/files/list', { params: { path: { agentId }, query: { path } } })),
  })
  if (!data)
    return error ? <Problem error={error} /> : <p className="px-2 py-1 text-soft text-sm">{texts.loading}</p>
  const entries = data.entries.toSorted(
    (a, b) => Number(b.type === 'directory') - Number(a.type === 'directory'),
  )
  if (entries.length === 0) return <p className="px-2 py-1 text-soft text-sm">{words.emptyFolder}</p>
  return (
    <ul {...(path === '' && { onKeyDown: moveInTree })}>
      {entries.map(({ name, type, size }) => (
        <li key={name}>
          {type === 'directory' ? (
            <SubFolder name={name} path={path ? `${path}/${name}` : name} {...choice} />
          ) : (
            <File name={name} size={size} path={path ? `${path}/${name}` : name} {...choice} />
          )}
        </li>
      ))}
      {data.truncated && <li className="px-2 py-1 text-soft text-sm">{words.truncated}</li>}
    </ul>
  )
}

const ROW =
  'flex w-full min-w-0 items-center gap-1.5 rounded-md px-2 py-1 text-left text-sm hover:bg-tint aria-[current=true]:bg-tint aria-[current=true]:text-accent'

function SubFolder({ name, ...rest }: Choice & { name: string; path: string }) {
  const [isOpen, setOpen] = useState(rest.chosen?.startsWith(`${rest.path}/`) ?? false)
  return (
    <>
      <button
        type="button"
        {...TREE_ROW}
        className={ROW}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <span aria-hidden className="w-3 text-soft text-xs">
          {isOpen ? '▾' : '▸'}
        </span>
        <span className="truncate font-medium">{name}</span>
      </button>
      {isOpen && (
        <div className="ml-3 border-line border-l pl-1">
          <Folder {...rest} />
        </div>
      )}
    </>
  )
}

function File({ name, size, path, chosen, onChoose }: Choice & { name: string; size: number; path: string }) {
  return (
    <button
      type="button"
      {...TREE_ROW}
      className={ROW}
      aria-current={chosen === path}
      onClick={() => onChoose(path)}
    >
      <span className="ml-4 flex-1 truncate">{name}</span>
      <span className="text-soft text-xs">{bytes(size)}</span>
    </button>
  )
}
