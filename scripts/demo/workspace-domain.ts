/** A custom domain, verified by DNS, and the agent's page behind it. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { DnsServer } from '../../test/support/dns.ts'
import { findBrowser, openPage } from './browser.ts'
import { until, type Workspace } from './workspace.ts'

const DOMAIN = 'harbour.example.test'

interface Domain {
  id: string
  status: string
}

/** @param port of the agent's page. */
export async function openDomain(scene: Workspace, dns: DnsServer, port: number): Promise<void> {
  const { screen, agent, berth, temp, signal } = scene
  const domain = await screen.step('Claim', async () => {
    const body = { customDomain: DOMAIN, targetPort: port }
    const { domain } = await agent.call<{ domain: Domain }>('POST', '/domains', body)
    return [domain, `${DOMAIN} is ${domain.status}`]
  })
  await screen.step('Verify', async () => {
    const { name, value } = await agent.call<{ name: string; value: string }>('POST', '/domains/challenge', {
      customDomain: DOMAIN,
    })
    dns.setTxt(name, value)
    const verified = await agent.call<{ domain: Domain }>('POST', `/domains/${domain.id}/verify`)
    if (verified.domain.status !== 'verified') throw new Error(`it is ${verified.domain.status}`)
    return [undefined, `TXT ${name} was found; ${DOMAIN} is ${verified.domain.status}`]
  })
  const title = await screen.step('Page', async () => {
    const page = await until(signal, async () => {
      const response = await get(berth.url, DOMAIN, signal)
      return response.statusCode === 200 ? text(response) : undefined
    })
    return [titleOf(page), `http://${DOMAIN} answers with “${titleOf(page)}”`]
  })
  await screen.step('Browser', async () => {
    const browser = await findBrowser()
    if (!browser) return [undefined, 'there is no Chromium or Chrome here: not opened']
    const url = `http://${DOMAIN}:${new URL(berth.url).port}/`
    const page = await openPage(browser, url, { hosts: [DOMAIN], profile: join(temp, 'browser'), signal })
    if (titleOf(page) !== title) throw new Error(`it shows “${titleOf(page)}”`)
    return [undefined, `opened in ${browser.split('/').at(-1)}: “${title}”`]
  })
}

/** Node asks a real DNS server for names, so the Host header carries the name. */
async function get(url: string, host: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { hostname, port } = new URL(url)
  const sent = request({ host: hostname, port, path: '/', agent: false, signal, headers: { host } })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return response
}

const titleOf = (html: string): string => /<title>([^<]*)<\/title>/.exec(html)?.[1]?.trim() ?? ''
