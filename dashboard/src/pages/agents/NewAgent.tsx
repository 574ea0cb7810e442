import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { AT_ONCE, useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { TextArea } from '../../parts/forms.tsx'
import { useMayChange } from '../../parts/rights.tsx'
import { Section } from '../../parts/section.tsx'
import { Button, Card, Empty, Field, PageHead, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AskedSecrets, useSecrets } from './AskedSecrets.tsx'
import { stateWord } from './agents.ts'
import { FailedCard } from './Failed.tsx'
import { hasFailed, shownState } from './failure.ts'
import { Gallery, type Template, useTemplates } from './Gallery.tsx'
import { ModelStep } from './ModelStep.tsx'
import { type LocalServer, type ModelChoice, PROVIDERS, useModels } from './models.ts'
import { Progress } from './Progress.tsx'
import { type Protocol, ProtocolChecks } from './ProtocolChecks.tsx'
import { Walls } from './Walls.tsx'

const t = texts.agents

/** Creates an agent from a template, a name, a model and secrets, then shows the progress of its start. */
export function NewAgent() {
  const { made } = useSearch({ from: '/shell/dashboard/agents/new' })
  const mayChange = useMayChange()
  return (
    <>
      <Link to="/dashboard/agents" className="mb-2 inline-block text-soft text-sm hover:text-ink">
        ← {t.title}
      </Link>
      <PageHead title={t.create} />
      {made && <Made agentId={made} />}
      {!made && <Walls />}
      {!made && mayChange && <Form />}
      {!made && !mayChange && <Empty title={texts.shell.viewersOnly} hint={texts.shell.viewersOnlyHint} />}
    </>
  )
}

function Form() {
  const go = useNavigate({ from: '/dashboard/agents/new' })
  const templates = useTemplates()
  const secrets = useSecrets()
  const [slug, setSlug] = useState('')
  const template = templates.data?.find((one) => one.slug === slug)
  const [told, setTold] = useState({ name: '', emoji: '', description: '' })
  const [protocols, setProtocols] = useState<Protocol[]>([])
  const [values, setValues] = useState<Record<string, string>>({})
  const [chosen, setChosen] = useState<string[]>([])
  const models = useModels()
  const known = secrets.data?.secrets.map(({ name }) => name) ?? []
  // If the template asks for a provider's key, the agent has a model already.
  const asksKey = template?.requiredSecrets.some(
    ({ name, required }) => name in PROVIDERS && (required || known.includes(name) || values[name]),
  )
  const asksModel = models?.hasDefault === false && secrets.data !== undefined && !asksKey
  const [decided, setChoice] = useState<ModelChoice>()
  const choice = asksModel ? (decided ?? firstChoice(models.local, known)) : undefined

  const create = useChange(
    async () => {
      const secretIds = [...chosen]
      const given = { ...values, ...(choice?.by === 'key' && { [choice.secret]: choice.value }) }
      const names = template?.requiredSecrets.map(({ name }) => name) ?? []
      for (const name of new Set(choice?.by === 'key' ? [...names, choice.secret] : names)) {
        const there = secrets.data?.secrets.find((secret) => secret.name === name)
        const value = given[name]
        if (there) secretIds.push(there.id)
        else if (value) {
          const made = await unwrap(api.POST('/v0/secrets', { body: { name, value, type: 'secret' } }))
          secretIds.push(made.secret.id)
        }
      }
      const { name, emoji, description } = told
      return unwrap(
        api.POST('/v0/agents', {
          params: { header: AT_ONCE },
          body: {
            name,
            ...(emoji && { emoji }),
            ...(description && { description }),
            ...(protocols.length > 0 && { protocols }),
            ...(template && { templateId: template.templateId }),
            secretIds: [...new Set(secretIds)],
            ...(choice?.by === 'local' && { localModel: { server: choice.server, model: choice.model } }),
          },
        }),
      )
    },
    ({ agent }) => void go({ search: { made: agent.agentId }, replace: true }),
  )
  const send = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const field = (name: keyof typeof told) => ({
    value: told[name],
    onChange: (event: { target: { value: string } }) => setTold({ ...told, [name]: event.target.value }),
  })
  return (
    <>
      {/* Outside the form, because its dialogs contain forms. */}
      <Section title={t.template} hint={t.templateHint}>
        <Problem error={templates.error} />
        <Gallery templates={templates.data ?? []} value={slug} onChange={setSlug} />
      </Section>
      {template && <About template={template} />}
      <form onSubmit={send}>
        <Section title={t.about}>
          <Card>
            <div className="grid gap-4 md:grid-cols-[1fr_8rem]">
              <Field label={t.agentName} required maxLength={100} {...field('name')} />
              <Field
                label={t.emoji}
                maxLength={32}
                placeholder={template?.defaultEmoji ?? ''}
                {...field('emoji')}
              />
              <div className="md:col-span-2">
                <TextArea
                  label={t.description}
                  rows={2}
                  maxLength={10_000}
                  placeholder={template?.description ?? ''}
                  {...field('description')}
                />
              </div>
              <div className="md:col-span-2">
                <ProtocolChecks chosen={protocols} onChange={setProtocols} />
              </div>
            </div>
          </Card>
        </Section>
        {asksModel && <ModelStep local={models.local} known={known} choice={choice} onChoice={setChoice} />}
        <Section title={t.secrets} hint={t.secretsHint}>
          <AskedSecrets
            asked={template?.requiredSecrets ?? []}
            without={asksModel ? Object.keys(PROVIDERS) : []}
            values={values}
            onValues={setValues}
            chosen={chosen}
            onChosen={setChosen}
          />
        </Section>
        <Problem error={create.error} />
        <div className="mt-4 flex items-center justify-end gap-3">
          <span className="text-soft text-sm">{t.createHint}</span>
          <Button look="main" type="submit" disabled={create.isPending}>
            {t.submit}
          </Button>
        </div>
      </form>
    </>
  )
}

/** The default choice: a local server if one was found, else a provider whose key the workspace has, else undefined. */
function firstChoice(local: LocalServer[], known: string[]): ModelChoice | undefined {
  const [found] = local
  if (found) return { by: 'local', server: found.server, model: found.models[0] ?? '' }
  const secret = Object.keys(PROVIDERS).find((name) => known.includes(name))
  return secret ? { by: 'key', secret, value: '' } : undefined
}

/** A readme without its headings: the page already shows the name. */
const withoutHeadings = (readme: string | null) => readme?.replace(/^#+ .*$/gm, '').trim()

/** The description of the chosen template. */
function About({ template }: { template: Template }) {
  const { name, longDescription, description, includedSkillCids, gitUrl, authorName } = template
  return (
    <Card className="-mt-4 mb-8">
      <p className="line-clamp-6 whitespace-pre-line break-words text-sm">
        {withoutHeadings(longDescription) || description}
      </p>
      <p className="mt-2 break-words text-soft text-xs">
        {[
          name,
          authorName && t.by(authorName),
          includedSkillCids.length > 0 && t.skillsOf(includedSkillCids.length),
          gitUrl,
        ]
          .filter(Boolean)
          .join(' · ')}
      </p>
    </Card>
  )
}

/** A new agent, with the progress of its start. */
function Made({ agentId }: { agentId: string }) {
  const params = { path: { agentId } }
  const { data, error } = useQuery({
    queryKey: ['agents', agentId],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}', { params })),
  })
  const agent = data?.agent
  const isUp = agent?.status === 'running'
  return (
    <Card className="max-w-xl">
      <Problem error={error} />
      {agent && (
        <div className="mb-5 flex items-center justify-between gap-3">
          <h2 className="min-w-0 break-words font-semibold text-lg">
            {agent.emoji} {agent.name}
          </h2>
          <State state={shownState(agent)} label={stateWord(shownState(agent))} />
        </div>
      )}
      {agent && hasFailed(agent) && <FailedCard agent={agent} />}
      <Progress agentId={agentId} isUp={isUp} />
      <div className="mt-6 flex flex-wrap justify-end gap-2">
        <Link
          to="/dashboard/agents/$agentId/logs"
          params={{ agentId }}
          className="inline-flex min-h-9 items-center rounded-lg border border-line px-3.5 py-1.5 font-medium text-sm hover:border-accent"
        >
          {t.seeLogs}
        </Link>
        <Link
          to="/dashboard/agents/$agentId"
          params={{ agentId }}
          className="inline-flex min-h-9 items-center rounded-lg bg-accent px-3.5 py-1.5 font-medium text-on-accent text-sm hover:opacity-90"
        >
          {isUp ? t.talk : t.open}
        </Link>
      </div>
    </Card>
  )
}
