import { useState } from 'react'
import { Button, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { isObject, type Json, read, write } from './config.ts'
import { Leaf } from './Leaf.tsx'
import { type Key, useSchema } from './schema.ts'

const t = texts.config

/** All settings in the engine's schema, one level at a time. */
export function AllSettings({
  agentId,
  config,
  operatorKeys,
  onChange,
}: {
  agentId: string
  config: Json
  operatorKeys: readonly string[]
  onChange: (config: Json) => void
}) {
  const [path, setPath] = useState<string[]>([])
  const { data, error, isPending } = useSchema(agentId, path.join('.'))
  const children = (data?.children ?? []).flatMap((child) => ownKeys(child, read(config, path)))
  const places = children.filter(({ hasChildren }) => hasChildren)
  const leaves = children.filter(({ hasChildren }) => !hasChildren)
  return (
    <div className="rounded-xl border border-line bg-card">
      <nav
        aria-label={t.place}
        className="flex flex-wrap items-center gap-1 border-line border-b px-5 py-3 text-sm"
      >
        {['', ...path].map((key, depth) => (
          <Button
            // biome-ignore lint/suspicious/noArrayIndexKey: the same key may occur at two depths
            key={depth}
            aria-current={depth === path.length ? 'page' : undefined}
            onClick={() => setPath(path.slice(0, depth))}
          >
            {depth === 0 ? t.views.all : key}
          </Button>
        ))}
      </nav>
      {data?.help && <p className="border-line border-b px-5 py-3 text-soft text-sm">{data.help}</p>}
      <Problem error={error} />
      {isPending && <p className="px-5 py-4 text-soft text-sm">{texts.loading}</p>}
      {data && children.length === 0 && <p className="px-5 py-4 text-soft text-sm">{t.nothingBelow}</p>}
      <ul className="divide-y divide-line">
        {leaves.map((leaf) => (
          <Leaf
            key={leaf.path}
            agentId={agentId}
            leaf={leaf}
            value={read(config, [...path, leaf.key])}
            isOperators={operatorKeys.some((key) => leaf.path === key || leaf.path.startsWith(`${key}.`))}
            onChange={(value) => onChange(write(config, [...path, leaf.key], value))}
          />
        ))}
        {places.map(({ key, label, help }) => (
          <li key={key}>
            <button
              type="button"
              onClick={() => setPath([...path, key])}
              className="flex w-full items-baseline gap-3 px-5 py-3 text-left text-sm hover:bg-tint"
            >
              <span className="min-w-0">
                <span className="font-medium">{label ?? key}</span>{' '}
                <code className="text-soft text-xs">{key}</code>
                {help && <span className="mt-0.5 block text-soft text-xs">{help}</span>}
              </span>
              <span aria-hidden className="ml-auto text-soft">
                ›
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** For a wildcard (`*`), the keys that the config has. */
function ownKeys(child: Key, there: unknown): Key[] {
  if (child.key !== '*') return [child]
  if (!isObject(there)) return []
  return Object.keys(there)
    .filter((key) => !key.includes('.'))
    .map((key) => ({ ...child, key, label: key, path: `${child.path.slice(0, -1)}${key}` }))
}
