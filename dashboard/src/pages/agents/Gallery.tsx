import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { Choice, Search } from '../../parts/choice.tsx'
import { FormDialog } from '../../parts/forms.tsx'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { Tag } from '../../parts/section.tsx'
import { Button, Field, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const t = texts.agents
/** Above this number of templates, the page offers a search. */
const SEARCHED_FROM = 8

const readTemplates = async () => {
  const query = { limit: 1000 }
  return (await unwrap(api.GET('/v0/templates', { params: { query } }))).templates
}
export type Template = Awaited<ReturnType<typeof readTemplates>>[number]

export const useTemplates = () => useQuery({ queryKey: ['templates'], queryFn: readTemplates })

/** A choice of template: none, a template that ships with Berth, or a template of the workspace. */
export function Gallery({
  templates,
  value,
  onChange,
}: {
  templates: Template[]
  /** The slug of the chosen template; empty for none. */
  value: string
  onChange: (slug: string) => void
}) {
  const [search, setSearch] = useState('')
  const [category, setCategory] = useState('')
  const [isAdding, setAdding] = useState(false)
  const [going, setGoing] = useState<Template>()
  const categories = [...new Set(templates.map((one) => one.category))].sort()
  const found = templates.filter(
    ({ name, description, tags, category: of }) =>
      (!category || of === category) &&
      [name, description, ...tags].join(' ').toLowerCase().includes(search.toLowerCase()),
  )
  return (
    <>
      {templates.length > SEARCHED_FROM && (
        <div className="mb-3 flex flex-wrap gap-3">
          <Search label={t.searchTemplates} value={search} onChange={setSearch} />
          <Choice
            label={t.category}
            value={category}
            onChange={setCategory}
            options={[['', t.all], ...categories.map((one) => [one, one] as const)]}
          />
        </div>
      )}
      <fieldset aria-label={t.template} className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Tile
          title={t.noTemplate}
          emoji="+"
          hint={t.noTemplateHint}
          isChosen={value === ''}
          onChoose={() => onChange('')}
        />
        {found.map((one) => (
          <Tile
            key={one.templateId}
            title={one.name}
            emoji={one.defaultEmoji ?? ''}
            hint={one.description}
            isChosen={value === one.slug}
            onChoose={() => onChange(one.slug)}
            tags={[
              ...(one.featured ? [] : [t.own]),
              ...(one.requiredSecrets.length > 0 ? [t.secretsOf(one.requiredSecrets.length)] : []),
            ]}
            {...(!one.featured && { menu: <TemplateMenu template={one} onRemove={() => setGoing(one)} /> })}
          />
        ))}
      </fieldset>
      <div className="mt-3">
        <Button onClick={() => setAdding(true)}>{t.addTemplate}</Button>
      </div>
      {isAdding && (
        <AddTemplate
          onClose={() => setAdding(false)}
          onAdded={(slug) => {
            setAdding(false)
            onChange(slug)
          }}
        />
      )}
      {going && <RemoveTemplate template={going} onClose={() => setGoing(undefined)} />}
    </>
  )
}

function Tile({
  title,
  emoji,
  hint,
  isChosen,
  onChoose,
  tags = [],
  menu,
}: {
  title: string
  emoji: string
  hint: string
  isChosen: boolean
  onChoose: () => void
  tags?: string[]
  menu?: React.ReactNode
}) {
  return (
    <div className="relative">
      <label className="flex h-full cursor-pointer flex-col rounded-xl border border-line bg-card p-4 hover:border-accent has-[:focus-visible]:outline-2 has-[:checked]:border-accent has-[:checked]:bg-tint has-[:focus-visible]:outline-accent">
        <input type="radio" name="template" className="sr-only" checked={isChosen} onChange={onChoose} />
        <span aria-hidden="true" className="mb-2 text-2xl leading-8">
          {emoji || '◇'}
        </span>
        <span className={`break-words font-medium text-sm ${menu ? 'pr-6' : ''}`}>{title}</span>
        <span className="mt-1 line-clamp-3 break-words text-soft text-xs">{hint}</span>
        {tags.length > 0 && (
          <span className="mt-3 flex flex-wrap gap-1">
            {tags.map((tag) => (
              <Tag key={tag}>{tag}</Tag>
            ))}
          </span>
        )}
      </label>
      {menu && <div className="absolute top-2 right-2">{menu}</div>}
    </div>
  )
}

function TemplateMenu({
  template: { templateId, name, gitUrl },
  onRemove,
}: {
  template: Template
  onRemove: () => void
}) {
  const path = { templateId }
  const read = useChange(() => unwrap(api.PUT('/v0/templates/{templateId}', { params: { path }, body: {} })))
  return (
    <>
      <Menu label={t.more(name)}>
        {gitUrl && (
          <MenuItem disabled={read.isPending} onSelect={() => read.mutate()}>
            {t.readAgain}
          </MenuItem>
        )}
        <MenuItem look="danger" onSelect={onRemove}>
          {t.archive}
        </MenuItem>
      </Menu>
      <Problem error={read.error} />
    </>
  )
}

function RemoveTemplate({ template, onClose }: { template: Template; onClose: () => void }) {
  const { templateId, name } = template
  const path = { templateId }
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/templates/{templateId}', { params: { path } })),
    onClose,
  )
  return (
    <FormDialog
      title={t.archiveTitle(name)}
      hint={t.archiveHint}
      submit={t.archive}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}

/** Adds a template from a public repository. */
function AddTemplate({ onClose, onAdded }: { onClose: () => void; onAdded: (slug: string) => void }) {
  const [gitUrl, setUrl] = useState('')
  const [branch, setBranch] = useState('')
  const add = useChange(
    () => unwrap(api.POST('/v0/templates', { body: { gitUrl, ...(branch && { branch }) } })),
    ({ template }) => onAdded(template.slug),
  )
  return (
    <FormDialog
      title={t.addTemplate}
      hint={t.addTemplateHint}
      submit={t.add}
      saving={add}
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.gitUrl}
        type="url"
        required
        placeholder="https://"
        value={gitUrl}
        onChange={(event) => setUrl(event.target.value)}
      />
      <Field label={t.branch} value={branch} onChange={(event) => setBranch(event.target.value)} />
    </FormDialog>
  )
}
