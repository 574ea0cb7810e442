import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { ago } from '../../parts/format.ts'
import { ConfirmByName, FormDialog, Select } from '../../parts/forms.tsx'
import { Button, Card, Empty, Field, PageHead, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const readAgents = () => unwrap(api.GET('/v0/agents'))
type Agent = Awaited<ReturnType<typeof readAgents>>['agents'][number]

/** The agents of the workspace, with what can be done to them. */
export function Agents() {
  const { data, error } = useQuery({ queryKey: ['agents'], queryFn: readAgents })
  const [isNew, setNew] = useState(false)
  const create = (
    <Button look="main" onClick={() => setNew(true)}>
      {texts.agents.create}
    </Button>
  )
  return (
    <>
      <PageHead title={texts.agents.title}>{data && data.agents.length > 0 && create}</PageHead>
      <Problem error={error} />
      {data?.agents.length === 0 && (
        <Empty title={texts.agents.empty} hint={texts.agents.emptyHint}>
          {create}
        </Empty>
      )}
      <ul className="grid gap-4 md:grid-cols-2 lg:grid-cols-3">
        {data?.agents.map((agent) => (
          <li key={agent.agentId}>
            <AgentCard agent={agent} />
          </li>
        ))}
      </ul>
      {isNew && <NewAgent onClose={() => setNew(false)} />}
    </>
  )
}

function AgentCard({ agent }: { agent: Agent }) {
  const { agentId, name, status, emoji, description } = agent
  const queries = useQueryClient()
  const [isGoing, setGoing] = useState(false)
  const restart = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST('/v0/agents/{agentId}/restart', {
          params: { path: { agentId }, header: { Prefer: 'respond-async' } },
        }),
      ),
    onSettled: () => queries.invalidateQueries(),
  })
  return (
    <Card>
      <div className="flex items-start justify-between gap-3">
        <h2 className="min-w-0 break-words font-semibold">
          <Link to="/dashboard/agents/$agentId" params={{ agentId }} className="hover:text-accent">
            {emoji} {name}
          </Link>
        </h2>
        <State state={status} label={texts.overview.states[status]} />
      </div>
      <p className="mt-1 min-h-5 break-words text-soft text-sm">{description}</p>
      <p className="mt-3 text-soft text-xs">
        <code>{agentId}</code> · {ago(agent.createdAt)}
      </p>
      <div className="mt-4 flex gap-2">
        <Button disabled={restart.isPending} onClick={() => restart.mutate()}>
          {texts.agents.restart}
        </Button>
        <Button onClick={() => setGoing(true)}>{texts.agents.remove}</Button>
      </div>
      <Problem error={restart.error} />
      {isGoing && <DeleteAgent agent={agent} onClose={() => setGoing(false)} />}
    </Card>
  )
}

function DeleteAgent({ agent: { agentId, name }, onClose }: { agent: Agent; onClose: () => void }) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(
        api.DELETE('/v0/agents/{agentId}', {
          params: { path: { agentId }, header: { Prefer: 'respond-async' } },
        }),
      ),
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  return (
    <ConfirmByName
      title={texts.agents.removeTitle}
      hint={texts.agents.removeHint(name)}
      name={name}
      submit={texts.agents.remove}
      saving={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    />
  )
}

function NewAgent({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [templateId, setTemplate] = useState('')
  const templates = useQuery({ queryKey: ['templates'], queryFn: () => unwrap(api.GET('/v0/templates')) })
  const create = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST('/v0/agents', {
          params: { header: { Prefer: 'respond-async' } },
          body: { name, ...(templateId && { templateId }) },
        }),
      ),
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  return (
    <FormDialog
      title={texts.agents.create}
      hint={texts.agents.createHint}
      submit={texts.agents.submit}
      saving={create}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field
        label={texts.agents.agentName}
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Select
        label={texts.agents.template}
        value={templateId}
        onChange={(event) => setTemplate(event.target.value)}
      >
        <option value="">{texts.agents.noTemplate}</option>
        {templates.data?.templates.map((template) => (
          <option key={template.templateId} value={template.templateId}>
            {template.name}
          </option>
        ))}
      </Select>
    </FormDialog>
  )
}
