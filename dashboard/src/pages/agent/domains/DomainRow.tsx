import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Copy } from '../../../parts/copy.tsx'
import { safeLink } from '../../../parts/links.ts'
import { Menu, MenuItem } from '../../../parts/menu.tsx'
import { Row, Tag } from '../../../parts/section.tsx'
import { Button, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { ChangeDomain, type Domain, RemoveDomain } from './dialogs.tsx'

const t = texts.domains

/** A domain with its state, and the records to set until it is verified. */
export function DomainRow({ domain }: { domain: Domain }) {
  const { id: domainId, agentId, customDomain, subdomain, status, url, txtName } = domain
  const [dialog, setDialog] = useState<'change' | 'remove'>()
  const close = () => setDialog(undefined)
  const name = customDomain ?? subdomain ?? ''
  const isVerified = status === 'verified'
  const verify = useChange(() =>
    unwrap(
      api.POST('/v0/agents/{agentId}/domains/{domainId}/verify', {
        params: { path: { agentId, domainId } },
      }),
    ),
  )
  return (
    <Row
      actions={
        <>
          {!isVerified && (
            <Button changes look="main" disabled={verify.isPending} onClick={() => verify.mutate()}>
              {verify.isPending ? t.checking : t.check}
            </Button>
          )}
          <Menu changes label={texts.agents.more(name)}>
            <MenuItem onSelect={() => setDialog('change')}>{t.change}</MenuItem>
            <MenuItem look="danger" onSelect={() => setDialog('remove')}>
              {t.remove}
            </MenuItem>
          </Menu>
        </>
      }
    >
      <h3 className="flex flex-wrap items-center gap-3 text-sm">
        {isVerified && safeLink(url) ? (
          <a
            href={safeLink(url)}
            target="_blank"
            rel="noreferrer"
            className="min-w-0 break-all font-medium hover:text-accent"
          >
            {url} <span aria-hidden="true">↗</span>
          </a>
        ) : (
          <span className="min-w-0 break-all font-medium">{name}</span>
        )}
        <State state={isVerified ? 'verified' : 'pending'} label={t.states[status]} />
      </h3>
      <p className="mt-1 flex flex-wrap gap-2 text-soft text-sm">
        {t.leadsTo(domain.targetPort)}
        <Tag>{domain.protected ? t.isProtected : t.isOpen}</Tag>
      </p>
      {customDomain && <Records domain={domain} customDomain={customDomain} />}
      {verify.data && !verify.data.verified && (
        <p role="status" className="mt-2 break-words text-busy text-sm">
          {t.notYet(txtName ?? '')}
        </p>
      )}
      <Problem error={verify.error} />
      {dialog === 'change' && <ChangeDomain domain={domain} onClose={close} />}
      {dialog === 'remove' && <RemoveDomain domain={domain} name={name} onClose={close} />}
    </Row>
  )
}

/** The DNS records of a custom domain: the proof while it is needed, and the target of the domain. */
function Records({
  domain: { txtName, txtValue, cnameTarget },
  customDomain,
}: {
  domain: Domain
  customDomain: string
}) {
  const records = [
    ...(txtName && txtValue ? [{ type: 'TXT', name: txtName, value: txtValue, why: t.whyTxt }] : []),
    ...(cnameTarget ? [{ type: 'CNAME', name: customDomain, value: cnameTarget, why: t.whyCname }] : []),
  ]
  return (
    <details className="mt-2" open={txtName !== null}>
      <summary className="cursor-pointer text-soft text-sm hover:text-ink">{t.records}</summary>
      <ul className="mt-2 space-y-2">
        {records.map(({ type, name, value, why }) => (
          <li key={type} className="rounded-lg border border-line bg-page p-3 text-sm">
            <p className="mb-2 text-soft">
              <Tag>{type}</Tag> {why}
            </p>
            <dl className="grid items-center gap-x-3 gap-y-1 sm:grid-cols-[4rem_minmax(0,1fr)_auto]">
              <dt className="text-soft">{t.recordName}</dt>
              <dd className="break-all font-mono text-xs">{name}</dd>
              <dd>
                <Copy text={name} />
              </dd>
              <dt className="text-soft">{t.recordValue}</dt>
              <dd className="break-all font-mono text-xs">{value}</dd>
              <dd>
                <Copy text={value} />
              </dd>
            </dl>
          </li>
        ))}
      </ul>
    </details>
  )
}
