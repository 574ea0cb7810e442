import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Button, Field, Modal } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const t = texts.settings

/** Creates a template from the agent's newest snapshot, for new agents. */
export function MakeTemplate({
  agent: { agentId, name: agentName },
  onClose,
}: {
  agent: { agentId: string; name: string }
  onClose: () => void
}) {
  const [name, setName] = useState(agentName)
  const [slug, setSlug] = useState('')
  const make = useChange(() =>
    unwrap(api.POST('/v0/templates', { body: { agentId, name, ...(slug && { slug }) } })),
  )
  if (make.data)
    return (
      <Modal title={t.templateMade} onClose={onClose}>
        <p className="text-soft text-sm">{t.templateMadeHint(make.data.template.name)}</p>
        <div className="mt-5 flex justify-end">
          <Button onClick={onClose}>{texts.close}</Button>
        </div>
      </Modal>
    )
  return (
    <FormDialog
      title={t.makeTemplate}
      hint={t.makeTemplateHint}
      submit={t.makeTemplate}
      saving={make}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.fields.name}
        required
        maxLength={100}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Field
        label={t.slug}
        pattern="[a-z0-9]+(-[a-z0-9]+)*"
        placeholder={t.slugExample}
        value={slug}
        onChange={(event) => setSlug(event.target.value)}
      />
    </FormDialog>
  )
}
