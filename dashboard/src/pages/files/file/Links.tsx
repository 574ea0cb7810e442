import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Copy } from '../../../parts/copy.tsx'
import { Select } from '../../../parts/forms.tsx'
import { Button, Card, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { addressOf, type FileRecord, linkTo, type Network, useGateways } from '../files.ts'

const words = texts.files.file
const HOUR = 3600
const EXPIRIES = [HOUR / 4, HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR]

/** Links to a file: public files at each gateway, private files by links that expire. */
export function Links({ file, network }: { file: FileRecord; network: Network }) {
  const { gateways, data } = useGateways()
  return (
    <Card title={words.links}>
      {data && gateways.length === 0 && (
        <p className="text-soft text-sm">
          {words.noGateway}{' '}
          <Link to="/dashboard/files/gateways" className="text-accent hover:underline">
            {words.makeGateway}
          </Link>
        </p>
      )}
      {network === 'public' ? (
        <ul className="space-y-2">
          {gateways.map(({ id, host, restrict }) => (
            <li key={id}>
              <Address url={`${addressOf(host)}/ipfs/${file.cid}`} />
              {restrict && <p className="mt-1 text-soft text-xs">{words.restricted}</p>}
            </li>
          ))}
        </ul>
      ) : (
        gateways[0] && <PrivateLink hosts={gateways.map(({ host }) => host)} cid={file.cid} />
      )}
    </Card>
  )
}

function Address({ url }: { url: string }) {
  return (
    <div className="flex items-start gap-2">
      <a
        href={url}
        target="_blank"
        rel="noreferrer"
        className="min-w-0 flex-1 break-all pt-1.5 font-mono text-accent text-xs hover:underline"
      >
        {url}
      </a>
      <Copy text={url} />
    </div>
  )
}

function PrivateLink({ hosts, cid }: { hosts: string[]; cid: string }) {
  const [host = '', setHost] = useState(hosts[0])
  const [seconds, setSeconds] = useState(HOUR)
  const make = useMutation({ mutationFn: () => linkTo(host, cid, seconds) })
  // Otherwise a link for another gateway or duration would look like a link for the current choice.
  const choose = (host: string, seconds: number) => {
    setHost(host)
    setSeconds(seconds)
    make.reset()
  }
  return (
    <div className="space-y-3">
      <p className="text-soft text-sm">{words.linkHint}</p>
      {hosts.length > 1 && (
        <Select label={words.gateway} value={host} onChange={(event) => choose(event.target.value, seconds)}>
          {hosts.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
      )}
      <Select
        label={words.goodFor}
        value={seconds}
        onChange={(event) => choose(host, Number(event.target.value))}
      >
        {EXPIRIES.map((one) => (
          <option key={one} value={one}>
            {words.duration(one)}
          </option>
        ))}
      </Select>
      <Button changes look="main" disabled={make.isPending} onClick={() => make.mutate()}>
        {words.makeLink}
      </Button>
      <Problem error={make.error} />
      {make.data && <Address url={make.data} />}
    </div>
  )
}
