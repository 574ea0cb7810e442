import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Check } from '../../../parts/choice.tsx'
import { FormDialog } from '../../../parts/forms.tsx'
import { Row, Rows, Section, Tag } from '../../../parts/section.tsx'
import { Button, Empty, Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const t = texts.routes
const ROUTES = '/v0/agents/{agentId}/port-forwarding'

interface PortRoute {
  pathPrefix: string
  port: number
  protected: boolean
}

/** Paths on the agent's host that lead to its ports. The API replaces them as a whole, so a change sends all. */
export function PortRoutes({ agentId }: { agentId: string }) {
  const [edited, setEdited] = useState<PortRoute | 'new'>()
  const params = { path: { agentId } }
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'routes'],
    queryFn: () => unwrap(api.GET(ROUTES, { params })),
  })
  const save = useChange(
    async (change: (routes: PortRoute[]) => PortRoute[]) => {
      // Read the current routes: another client may have changed them.
      const now = await unwrap(api.GET(ROUTES, { params }))
      return unwrap(api.PUT(ROUTES, { params, body: { mappings: change(now.mappings) } }))
    },
    () => setEdited(undefined),
  )
  const without = (routes: PortRoute[], path: string) => routes.filter((one) => one.pathPrefix !== path)
  const create = (
    <Button changes onClick={() => setEdited('new')}>
      {t.create}
    </Button>
  )
  return (
    <Section title={t.title} hint={t.hint} actions={data && data.mappings.length > 0 && create}>
      <Problem error={error ?? (edited ? null : save.error)} />
      {data?.mappings.length === 0 && (
        <Empty changes title={t.empty} hint={t.emptyHint}>
          {create}
        </Empty>
      )}
      {data && data.mappings.length > 0 && (
        <Rows label={t.title}>
          {data.mappings.map((route) => (
            <Row
              key={route.pathPrefix}
              actions={
                <>
                  <Button changes onClick={() => setEdited(route)}>
                    {t.change}
                  </Button>
                  <Button
                    changes
                    disabled={save.isPending}
                    onClick={() => save.mutate((routes) => without(routes, route.pathPrefix))}
                  >
                    {t.remove}
                  </Button>
                </>
              }
            >
              <p className="flex flex-wrap items-center gap-2 text-sm">
                <code className="break-all font-medium">{route.pathPrefix}</code>
                <span className="text-soft">{texts.domains.leadsTo(route.port)}</span>
                <Tag>{route.protected ? texts.domains.isProtected : texts.domains.isOpen}</Tag>
              </p>
            </Row>
          ))}
        </Rows>
      )}
      {edited && (
        <RouteForm
          {...(edited !== 'new' && { route: edited })}
          saving={save}
          onSave={(route) =>
            save.mutate((routes) => [
              ...(edited === 'new' ? routes : without(routes, edited.pathPrefix)),
              route,
            ])
          }
          onClose={() => {
            save.reset()
            setEdited(undefined)
          }}
        />
      )}
    </Section>
  )
}

function RouteForm({
  route,
  saving,
  onSave,
  onClose,
}: {
  route?: PortRoute
  saving: { isPending: boolean; error: Error | null }
  onSave: (route: PortRoute) => void
  onClose: () => void
}) {
  const [pathPrefix, setPath] = useState(route?.pathPrefix ?? '/app')
  const [port, setPort] = useState(String(route?.port ?? 3000))
  const [isProtected, setProtected] = useState(route?.protected ?? true)
  return (
    <FormDialog
      title={route ? t.change : t.create}
      submit={texts.domains.save}
      saving={saving}
      onSubmit={() => onSave({ pathPrefix, port: Number(port), protected: isProtected })}
      onClose={onClose}
    >
      <Field
        label={t.path}
        required
        pattern="/.*"
        value={pathPrefix}
        onChange={(event) => setPath(event.target.value)}
      />
      <Field
        label={texts.domains.port}
        type="number"
        min={1025}
        max={65_535}
        required
        value={port}
        onChange={(event) => setPort(event.target.value)}
      />
      <Check
        label={texts.domains.protect}
        hint={texts.domains.protectHint}
        checked={isProtected}
        onChange={setProtected}
      />
    </FormDialog>
  )
}
