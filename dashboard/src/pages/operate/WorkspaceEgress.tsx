import { AskedButton } from '../../parts/forms.tsx'
import { Section } from '../../parts/section.tsx'
import { Time } from '../../parts/time.tsx'
import { Loading, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { PolicyFields } from '../egress/PolicyFields.tsx'
import { useEditing, useWorkspacePolicy } from '../egress/policy.ts'
import { SaveBar } from '../egress/SaveBar.tsx'

const t = texts.egress.workspace
type Stored = NonNullable<ReturnType<typeof useWorkspacePolicy>['data']>['data']

/** Where agents without a policy of their own may connect to. */
export function WorkspaceEgress() {
  const { data, error } = useWorkspacePolicy()
  return (
    <Section title={texts.egress.title} hint={t.hint}>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && <Policy stored={data.data} />}
    </Section>
  )
}

function Policy({ stored }: { stored: Stored }) {
  const editing = useEditing(undefined, stored)
  const { updatedAt } = stored
  return (
    <>
      <PolicyFields editing={editing}>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <p className="min-w-0 flex-1 basis-60 text-sm">
            {updatedAt ? <Time at={updatedAt} words={t.setAt} /> : t.none}
          </p>
          {updatedAt && (
            <AskedButton
              label={t.remove}
              title={t.removeTitle}
              hint={t.removeHint}
              saving={editing.remove}
              onConfirm={() => editing.remove.mutate()}
            />
          )}
        </div>
      </PolicyFields>
      <SaveBar editing={editing} hint={texts.egress.unsaved} />
    </>
  )
}
