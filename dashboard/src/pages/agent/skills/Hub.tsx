import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Choice, Search } from '../../../parts/choice.tsx'
import { Row, Rows, Section, Tag } from '../../../parts/section.tsx'
import { Button, Empty, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { attachSkill, type LibrarySkill, useAttached, useLibrary } from './skills.ts'

const t = texts.skills
type Sort = keyof typeof t.sorts

const readHub = (q: string, sort: Sort, cursor: string) =>
  unwrap(api.GET('/v0/clawhub', { params: { query: { ...(q && { q }), sort, ...(cursor && { cursor }) } } }))
type HubSkill = Awaited<ReturnType<typeof readHub>>['skills'][number]

/** Skills that can be installed. */
export function Hub({ agentId }: { agentId: string }) {
  const [q, setQ] = useState('')
  const [sort, setSort] = useState<Sort>('popular')
  const { data, error, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ['hub', q, sort],
    initialPageParam: '',
    queryFn: ({ pageParam }) => readHub(q, sort, pageParam),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    placeholderData: (before) => before,
  })
  const attached = useAttached(agentId)
  const library = useLibrary()
  const skills = data?.pages.flatMap((page) => page.skills) ?? []
  return (
    <Section title={t.views.hub} hint={t.hubHint}>
      <div className="mb-3 flex flex-wrap gap-3">
        <Search label={t.search} value={q} onChange={setQ} />
        <Choice
          label={t.sort}
          value={sort}
          onChange={setSort}
          options={(Object.keys(t.sorts) as Sort[]).map((one) => [one, t.sorts[one]] as const)}
        />
      </div>
      <Problem error={error} />
      {data && skills.length === 0 && <Empty title={t.nothing} />}
      {skills.length > 0 && (
        <Rows label={t.views.hub}>
          {skills.map((skill) => (
            <HubRow
              key={skill.hubSkillId}
              agentId={agentId}
              skill={skill}
              inLibrary={library.data?.skills.find((one) => one.slug === skill.slug)}
              isAttached={attached.data?.skills.some((one) => one.slug === skill.slug) ?? false}
            />
          ))}
        </Rows>
      )}
      {hasNextPage && (
        <div className="mt-4 text-center">
          <Button onClick={() => void fetchNextPage()}>{t.more}</Button>
        </div>
      )}
    </Section>
  )
}

function HubRow({
  agentId,
  skill,
  inLibrary,
  isAttached,
}: {
  agentId: string
  skill: HubSkill
  /** The same skill in the library, once installed. */
  inLibrary: LibrarySkill | undefined
  isAttached: boolean
}) {
  const { slug, description, longDescription, version, installCount, authorName, envVars } = skill
  const install = useChange(() =>
    unwrap(api.POST('/v0/clawhub/{slug}/install', { params: { path: { slug } } })),
  )
  const attach = useChange(() => attachSkill(agentId, slug))
  const isNewer = inLibrary && !install.isSuccess && version !== null && inLibrary.version !== version
  const isInstalled = inLibrary !== undefined && !isNewer
  return (
    <Row
      actions={
        <>
          <Button changes disabled={install.isPending || isInstalled} onClick={() => install.mutate()}>
            {isInstalled ? t.installed : isNewer ? t.updateTo(version) : t.install}
          </Button>
          <Button changes disabled={isAttached || attach.isPending} onClick={() => attach.mutate()}>
            {isAttached ? t.isAttached : t.attach}
          </Button>
        </>
      }
    >
      <h3 className="flex flex-wrap items-center gap-2 font-medium text-sm">
        <span className="min-w-0 break-words">{slug}</span>
        {version && <Tag>{version}</Tag>}
      </h3>
      <p className="mt-0.5 line-clamp-3 break-words text-soft text-sm">{longDescription ?? description}</p>
      <p className="mt-0.5 break-words text-soft text-xs">
        {[authorName, t.installs(installCount), envVars.length > 0 && t.reads(envVars.map((one) => one.name))]
          .filter(Boolean)
          .join(' · ')}
      </p>
      <Problem error={install.error ?? attach.error} />
    </Row>
  )
}
