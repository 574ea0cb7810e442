import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Search } from '../../../parts/choice.tsx'
import { shorten } from '../../../parts/format.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Menu, MenuItem } from '../../../parts/menu.tsx'
import { Row, Rows, Section, Tag } from '../../../parts/section.tsx'
import { Button, Empty, Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { attachSkill, type LibrarySkill, useAttached, useLibrary } from './skills.ts'

const t = texts.skills
const SEARCHED_FROM = 8

/** The skills of the workspace. */
export function Library({ agentId }: { agentId: string }) {
  const { data, error } = useLibrary()
  const attached = useAttached(agentId)
  const [search, setSearch] = useState('')
  const [isAdding, setAdding] = useState(false)
  const skills = data?.skills ?? []
  const found = skills.filter(({ name, description }) =>
    `${name} ${description}`.toLowerCase().includes(search.toLowerCase()),
  )
  const add = (
    <Button changes onClick={() => setAdding(true)}>
      {t.addByCid}
    </Button>
  )
  return (
    <Section title={t.views.library} hint={t.libraryHint} actions={skills.length > 0 && add}>
      <Problem error={error} />
      {skills.length > SEARCHED_FROM && (
        <div className="mb-3 flex">
          <Search label={t.search} value={search} onChange={setSearch} />
        </div>
      )}
      {data && skills.length === 0 && (
        <Empty changes title={t.libraryEmpty} hint={t.libraryEmptyHint}>
          {add}
        </Empty>
      )}
      {found.length > 0 && (
        <Rows label={t.views.library}>
          {found.map((skill) => (
            <LibraryRow
              key={skill.skillId}
              agentId={agentId}
              skill={skill}
              isAttached={attached.data?.skills.some((one) => one.skillId === skill.skillId) ?? false}
            />
          ))}
        </Rows>
      )}
      {isAdding && <AddSkill onClose={() => setAdding(false)} />}
    </Section>
  )
}

function LibraryRow({
  agentId,
  skill,
  isAttached,
}: {
  agentId: string
  skill: LibrarySkill
  isAttached: boolean
}) {
  const { skillId, skillCid, name, version, description, envVars } = skill
  const [isGoing, setGoing] = useState(false)
  const attach = useChange(() => attachSkill(agentId, skillCid))
  return (
    <Row
      actions={
        <>
          <Button changes disabled={isAttached || attach.isPending} onClick={() => attach.mutate()}>
            {isAttached ? t.isAttached : t.attach}
          </Button>
          <Menu changes label={texts.agents.more(name)}>
            <MenuItem look="danger" onSelect={() => setGoing(true)}>
              {t.remove}
            </MenuItem>
          </Menu>
        </>
      }
    >
      <h3 className="flex flex-wrap items-center gap-2 font-medium text-sm">
        <span className="min-w-0 break-words">{name}</span>
        {version && <Tag>{version}</Tag>}
        <code className="font-normal text-soft text-xs" title={skillCid}>
          {shorten(skillCid)}
        </code>
      </h3>
      <p className="mt-0.5 line-clamp-2 break-words text-soft text-sm">{description}</p>
      {envVars.length > 0 && (
        <p className="mt-0.5 break-words text-soft text-xs">{t.reads(envVars.map((one) => one.name))}</p>
      )}
      <Problem error={attach.error} />
      {isGoing && <RemoveSkill skillId={skillId} name={name} onClose={() => setGoing(false)} />}
    </Row>
  )
}

function RemoveSkill({ skillId, name, onClose }: { skillId: string; name: string; onClose: () => void }) {
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/skills/{skillId}', { params: { path: { skillId } } })),
    onClose,
  )
  return (
    <FormDialog
      title={t.removeTitle(name)}
      hint={t.removeHint}
      submit={t.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}

/** Adds a folder with SKILL.md from IPFS. */
function AddSkill({ onClose }: { onClose: () => void }) {
  const [skillCid, setCid] = useState('')
  const [name, setName] = useState('')
  const add = useChange(async () => {
    const made = await unwrap(api.POST('/v0/skills', { body: { skillCid, name } }))
    if (!('skill' in made)) throw new Error(t.retrieving)
  }, onClose)
  return (
    <FormDialog
      title={t.addByCid}
      hint={t.addHint}
      submit={t.add}
      saving={add}
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <Field label={t.cid} required value={skillCid} onChange={(event) => setCid(event.target.value)} />
      <Field label={t.name} required value={name} onChange={(event) => setName(event.target.value)} />
    </FormDialog>
  )
}
