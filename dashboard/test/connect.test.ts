/** Set-ups of programs, and the consent to a client of `/mcp`, in a real browser. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, describe, it } from 'node:test'
import { startAuthorization } from '@modelcontextprotocol/client'
import { openDashboard } from './support.ts'

const dashboard = await openDashboard()
const { url, env, own, page, complaints, link, look } = dashboard

/** The client: its document, and the page to which the browser comes back. */
const host = `http://${env.BERTH_MCP_CLIENT_ALLOW}`
const client_id = `${host}/client.json`
const returned: URL[] = []
const server = createServer((req, res) => {
  const at = new URL(req.url ?? '/', host)
  if (at.pathname === '/client.json')
    return void res.end(
      JSON.stringify({ client_id, client_name: 'Example', redirect_uris: ['http://127.0.0.1/back'] }),
    )
  if (at.pathname === '/back') returned.push(at)
  res.setHeader('content-type', 'text/html').end('<title>Back</title>Back')
}).listen(Number(new URL(host).port), '127.0.0.1')
await once(server, 'listening')
after(() => {
  server.close()
  server.closeAllConnections()
})

/** The page that the client opens. */
async function consentPage(): Promise<string> {
  const begun = await startAuthorization(url, {
    clientInformation: { client_id },
    redirectUrl: `${host}/back`,
    scope: 'org:agents:write org:files:read',
    state: '1e5',
    resource: `${url}/mcp`,
  })
  // The client would take the address from the metadata.
  return `${url}/dashboard/authorize${begun.authorizationUrl.search}`
}

describe('connect', () => {
  it('a client that a signed-out user gives access gets a code, with the scopes that stay ticked', async () => {
    await page.goto(await consentPage())
    await page.getByText('To sign in, run').waitFor()
    const token = (await link()).split('#')[1]
    // The link opens in the tab in which the client's request waits.
    await page.goto(`${url}/login#${token}`)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: `Give ${new URL(host).host} access?` }).waitFor()
    await page.getByText('Example (not verified)').waitFor()
    await look('authorize')
    await page.getByLabel('Write agents').uncheck()
    await page.getByRole('button', { name: 'Give access' }).click()
    await page.waitForURL(`${host}/back?*`)
    const back = returned.at(-1)?.searchParams
    assert.deepEqual([back?.get('state'), back?.get('iss'), !!back?.get('code')], ['1e5', url, true])
    const { keys } = (await own.api.get(`/v0/workspaces/${own.id}/keys`)).body.data
    assert.deepEqual([keys[0].audience, keys[0].scopes], ['mcp', ['org:files:read']])
  })
  it('a refusal sends the browser back without a code, and a malformed request shows why', async () => {
    await page.goto(await consentPage())
    await page.getByRole('button', { name: 'Refuse' }).click()
    await page.waitForURL(`${host}/back?*`)
    assert.equal(returned.at(-1)?.searchParams.get('error'), 'access_denied')
    await page.goto(`${url}/dashboard/authorize?client_id=x`)
    await page.getByRole('heading', { name: 'This request is not valid' }).waitFor()
    await page.getByText('response_type: must be code').waitFor()
  })
  it('the page Connect has set-ups with the URL of this Berth, with a key or without', async () => {
    await page.goto(`${url}/dashboard/operate/connect`)
    const setUp = page.getByRole('article').filter({ hasText: 'Cursor' })
    await setUp.getByText(`"url": "${url}/mcp"`).waitFor()
    assert.match((await setUp.locator('pre').textContent()) ?? '', /Authorization/)
    await look('connect')
    await page.getByRole('button', { name: 'Through the browser' }).click()
    assert.doesNotMatch((await setUp.locator('pre').textContent()) ?? '', /Authorization/)
    await page.getByText(`berth login ${url}`).waitFor()
    const others = complaints.filter((one) => !one.startsWith(`asked ${host}/`))
    assert.deepEqual(others, [])
  })
})
