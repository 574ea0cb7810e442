import { useState } from 'react'
import { AT_ONCE, useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Row, Rows, Section, Tag } from '../../../parts/section.tsx'
import { Button, Empty, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { detachSkill, useAttached, useUpdates } from './skills.ts'

const t = texts.skills
type Skill = NonNullable<ReturnType<typeof useAttached>['data']>['skills'][number]
type Update = NonNullable<ReturnType<typeof useUpdates>['data']>['updates'][number]

/** The skills of an agent, with a mark on those that have a newer version. */
export function Attached({ agentId, onAdd }: { agentId: string; onAdd: () => void }) {
  const { data, error } = useAttached(agentId)
  const updates = useUpdates(agentId)
  return (
    <Section title={t.attached} hint={t.attachedHint}>
      <Problem error={error ?? updates.error} />
      {data?.skills.length === 0 && (
        <Empty changes title={t.empty} hint={t.emptyHint}>
          <Button changes look="main" onClick={onAdd}>
            {t.views.hub}
          </Button>
        </Empty>
      )}
      {data && data.skills.length > 0 && (
        <Rows label={t.attached}>
          {data.skills.map((skill) => (
            <SkillRow
              key={skill.skillId}
              skill={skill}
              update={updates.data?.updates.find((one) => one.skillId === skill.skillId)}
            />
          ))}
        </Rows>
      )}
    </Section>
  )
}

function SkillRow({ skill, update }: { skill: Skill; update: Update | undefined }) {
  const { agentId, name, version, description } = skill
  const [dialog, setDialog] = useState<'detach' | 'update'>()
  const folder = update?.folder
  const isOdd = folder === 'modified' || folder === 'other'
  return (
    <Row
      actions={
        <>
          {(update?.updateAvailable || isOdd) && (
            <Button changes look="main" onClick={() => setDialog('update')}>
              {update?.updateAvailable ? t.updateTo(update.latestVersion ?? '') : t.resolve}
            </Button>
          )}
          <Button changes onClick={() => setDialog('detach')}>
            {t.detach}
          </Button>
        </>
      }
    >
      <h3 className="flex flex-wrap items-center gap-2 font-medium text-sm">
        <span className="min-w-0 break-words">{name}</span>
        {version && <Tag>{version}</Tag>}
        {folder && folder !== 'same' && (
          <span className="font-normal text-busy text-xs">{t.folders[folder]}</span>
        )}
      </h3>
      <p className="mt-0.5 line-clamp-2 break-words text-soft text-sm">{description}</p>
      {dialog === 'detach' && <Detach skill={skill} onClose={() => setDialog(undefined)} />}
      {dialog === 'update' && (
        <UpdateSkill agentId={agentId} skill={skill} isOdd={isOdd} onClose={() => setDialog(undefined)} />
      )}
    </Row>
  )
}

function Detach({ skill: { agentId, skillId, name }, onClose }: { skill: Skill; onClose: () => void }) {
  const detach = useChange(() => detachSkill(agentId, skillId), onClose)
  return (
    <FormDialog
      title={t.detachTitle(name)}
      hint={t.detachHint}
      submit={t.detach}
      look="danger"
      saving={detach}
      onSubmit={() => detach.mutate()}
      onClose={onClose}
    />
  )
}

/** Updates a skill. If the agent has changed the folder, asks what to do with the changes. */
function UpdateSkill({
  agentId,
  skill: { skillId, skillCid, name },
  isOdd,
  onClose,
}: {
  agentId: string
  skill: Skill
  isOdd: boolean
  onClose: () => void
}) {
  const [resolution, setResolution] = useState<'keep' | 'replace'>('keep')
  const update = useChange(
    () =>
      unwrap(
        api.POST('/v0/agents/{agentId}/skills/{skillId}/update', {
          params: { path: { agentId, skillId }, header: AT_ONCE },
          body: { expectedSkillCid: skillCid, ...(isOdd && { resolution }) },
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.updateTitle(name)}
      hint={isOdd ? t.oddHint : t.updateHint}
      submit={isOdd ? t.resolve : t.update}
      saving={update}
      onSubmit={() => update.mutate()}
      onClose={onClose}
    >
      {isOdd && (
        <fieldset className="space-y-2">
          {(['keep', 'replace'] as const).map((one) => (
            <label key={one} className="flex items-start gap-2 text-sm">
              <input
                type="radio"
                name="resolution"
                className="mt-0.5 accent-accent"
                checked={resolution === one}
                onChange={() => setResolution(one)}
              />
              {t.resolutions[one]}
            </label>
          ))}
        </fieldset>
      )}
    </FormDialog>
  )
}
