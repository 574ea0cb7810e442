/**
 * Sign-in in a real browser: passkeys on Chromium's virtual authenticator, an OpenID provider, and the page of a user's
 * sessions. With DASHBOARD_SHOTS=<folder> it saves screenshots of the pages there.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { CDPSession, Page } from 'playwright-core'
import { startWebProcess } from '../../test/contract/web-process.ts'
import { BUNDLE } from '../../test/support/command-line.ts'
import { oidcSettings, startProvider } from '../../test/support/openid-provider.ts'
import { freePort, run, until } from '../../test/support/processes.ts'
import { HOST_MS, HOSTILE, openDashboard } from './support.ts'

const dashboard = await openDashboard()
const { own, page, browser, env, sql } = dashboard
const providerPort = await freePort()
const web = await startWebProcess(env, oidcSettings(providerPort))
after(() => web.running.end())
/** Passkeys need a host name rather than an IP address. */
const home = web.url.replace('127.0.0.1', 'localhost')
const provider = await startProvider(`${home}/login`, { port: providerPort })
after(() => provider.stop())
const REFUSED = 'The passkey was not accepted: try again'

/** Other files sign the workspace's first owner in. */
const owner = await own.member('owner')

async function signInByLink(on: Page, { name } = owner): Promise<void> {
  await on.goto(`${home}/login#token=${await own.loginToken(name)}`)
  await on.getByRole('button', { name: 'Sign in', exact: true }).click()
  await on.getByRole('heading', { name: 'Overview' }).waitFor()
}
async function signOut(on: Page): Promise<void> {
  await on.getByRole('button', { name: 'Sign out' }).click()
  await on.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
}

interface Authenticator {
  cdp: CDPSession
  id: string
}

/** A device that stores passkeys, and whose owner is verified at once. */
async function addAuthenticator(on: Page): Promise<Authenticator> {
  const cdp = await on.context().newCDPSession(on)
  await cdp.send('WebAuthn.enable')
  const { authenticatorId: id } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
      ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    },
  })
  return { cdp, id }
}

/** A new page with a device. */
async function newBrowser(): Promise<{ page: Page; device: Authenticator }> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
  page.setDefaultTimeout(HOST_MS)
  return { page, device: await addAuthenticator(page) }
}

/** Sends an API request from within a page, as the dashboard does. */
const ask = (on: Page, method: string, path: string, body?: unknown) =>
  on.evaluate(
    async ([method, path, body]) => {
      const response = await fetch(path, {
        method,
        headers: { 'berth-session': '1', 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: await response.json() }
    },
    [method, path, body] as const,
  )

/** The response of the page's authenticator to options from the API. */
const sign = (on: Page, options: object) =>
  on.evaluate(async (options) => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as never)
    const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
    return credential.toJSON() as any
  }, options)
const create = (on: Page, options: object) =>
  on.evaluate(async (options) => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as never)
    const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
    return credential.toJSON() as any
  }, options)
const begin = async (on: Page) => (await ask(on, 'POST', '/v0/login/passkey/options')).body.data
const login = (on: Page, credential: unknown, more: object = {}) =>
  ask(on, 'POST', '/v0/login/passkey', { credential, ...more })

/** A member with a passkey in the browser, signed out again. */
async function withPasskey() {
  const member = await own.member('member')
  const { page, device } = await newBrowser()
  await signInByLink(page, member)
  const options = (await ask(page, 'POST', '/v0/passkeys/options')).body.data
  const made = await ask(page, 'POST', '/v0/passkeys', {
    name: 'Test',
    credential: await create(page, options),
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  await page.context().clearCookies()
  // The dashboard would reload if it noticed that the session has moved to another workspace.
  await page.goto(`${home}/login`)
  return { member, page, device, passkey: made.body.data, options }
}

describe('passkeys', () => {
  it('a passkey is added, signs in, and is deleted', async () => {
    const device = await addAuthenticator(page)
    await page.goto(`${home}/login`)
    await page.getByText('npx berth login-link').waitFor()
    await dashboard.look('login-ways')
    await signInByLink(page)
    await page.getByText('your sign-in link works only once').waitFor()
    await page.getByRole('link', { name: 'Add a passkey' }).click()
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(HOSTILE)
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('cell', { name: HOSTILE }).waitFor()
    // On a phone its buttons are visible.
    await page.setViewportSize({ width: 390, height: 780 })
    const [wide, width] = await page.evaluate(() => [document.body.scrollWidth, innerWidth])
    const remove = await page.getByRole('button', { name: 'Delete' }).boundingBox()
    assert.ok(remove && remove.x > 0 && remove.x + remove.width <= 390, JSON.stringify(remove))
    assert.ok((wide ?? 0) <= (width ?? 0), `${wide} of ${width}`)
    await page.setViewportSize({ width: 1280, height: 800 })
    assert.equal(await page.evaluate('window.ran'), undefined)
    // The same device again: it stores only one passkey for each user.
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await dialog.getByRole('alert').getByText('already has a passkey for you').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dashboard.look('account')
    await signOut(page)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByText('your sign-in link works only once').waitFor({ state: 'detached' })
    const { data } = (await ask(page, 'GET', '/v0/me')).body
    assert.equal(data.workspace.id, own.id)
    const entries = await sql('SELECT action, via FROM audit WHERE key_id = $1', [data.session.id])
    assert.deepEqual(entries, [{ action: 'loginWithPasskey', via: 'session' }])
    await page.goto(`${home}/dashboard/account`)
    const passkeys = page.getByRole('region', { name: 'Passkeys' })
    await passkeys.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No passkeys yet').waitFor()
    await signOut(page)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('alert').getByText(REFUSED).waitFor()
    await device.cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: device.id })
  })
  it('a challenge is valid once, for minutes, and only for its purpose', async () => {
    const { page, member, options } = await withPasskey()
    const credential = await sign(page, await begin(page))
    assert.equal((await login(page, credential)).status, 200)
    assert.equal((await ask(page, 'GET', '/v0/me')).body.data.user.id, member.id)
    const again = await login(page, credential)
    assert.deepEqual([again.status, again.body.error], [401, REFUSED])
    const late = await sign(page, await begin(page))
    await sql('UPDATE passkey_challenge SET expires_at = now()')
    assert.equal((await login(page, late)).status, 401)
    // A challenge created for a registration, and an unknown challenge.
    for (const challenge of [options.challenge, 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'])
      assert.equal((await login(page, await sign(page, { ...(await begin(page)), challenge }))).status, 401)
    await page.context().close()
  })
  it('a passkey is refused without verification by finger, face or PIN', async () => {
    const { page, device } = await withPasskey()
    const { cdp, id: authenticatorId } = device
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    const options = { ...(await begin(page)), userVerification: 'discouraged' }
    assert.equal((await login(page, await sign(page, options))).status, 401)
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
    assert.equal((await login(page, await sign(page, await begin(page)))).status, 200)
    await page.context().close()
  })
  it('a copied passkey is refused because of its counter', async () => {
    const { page, device, passkey } = await withPasskey()
    assert.equal((await login(page, await sign(page, await begin(page)))).status, 200)
    const { cdp, id: authenticatorId } = device
    const [copy] = (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials
    assert.ok(copy && copy.signCount > 0)
    assert.equal((await login(page, await sign(page, await begin(page)))).status, 200)
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId })
    await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: copy })
    const replayed = await login(page, await sign(page, await begin(page)))
    assert.deepEqual([replayed.status, replayed.body.error], [401, REFUSED])
    const [row] = await sql('SELECT counter FROM passkey WHERE id = $1', [passkey.id])
    assert.ok(Number(row?.counter) > copy.signCount)
    await page.context().close()
  })
  it('a tampered passkey response is refused', async () => {
    const { page } = await withPasskey()
    const other = await withPasskey()
    for (const change of [
      (one: any) => ({ ...one, response: { ...one.response, signature: one.response.authenticatorData } }),
      (one: any) => ({ ...one, response: { ...one.response, userHandle: 'AAAAAAAAAAAAAAAAAAAAAA' } }),
      (one: any, theirs: any) => ({ ...one, id: theirs.id, rawId: theirs.id }),
      (one: any, theirs: any) => ({
        ...one,
        ...{ id: theirs.id, rawId: theirs.id },
        response: { ...one.response, userHandle: theirs.response.userHandle },
      }),
    ]) {
      const theirs = await sign(other.page, await begin(other.page))
      const credential = change(await sign(page, await begin(page)), theirs)
      assert.equal((await login(page, credential)).status, 401)
    }
    const { status, body } = await login(page, { ...(await sign(page, await begin(page))), id: 7 })
    assert.deepEqual([status, body.error.split(':')[0]], [400, 'credential.id'])
    await page.context().close()
    await other.page.context().close()
  })
  it('a passkey response from a page on a subdomain is refused', async () => {
    const { page } = await withPasskey()
    const credential = await sign(page, await begin(page))
    const said = JSON.parse(Buffer.from(credential.response.clientDataJSON, 'base64url').toString())
    assert.equal(said.origin, home)
    // The data that a browser would send on such a page.
    const fresh = await sign(page, await begin(page))
    const of = JSON.parse(Buffer.from(fresh.response.clientDataJSON, 'base64url').toString())
    const clientDataJSON = Buffer.from(
      JSON.stringify({ ...of, origin: home.replace('localhost', 'x7f3k2ab.agents.localhost') }),
    ).toString('base64url')
    const response = { ...fresh.response, clientDataJSON }
    assert.equal((await login(page, { ...fresh, response })).status, 401)
    // Passkeys are off if PUBLIC_URL differs, or the host is an IP address.
    const refused = await fetch(`${web.url}/v0/login/passkey/options`, { method: 'POST' })
    assert.equal(refused.status, 404)
    assert.equal((await (await fetch(`${web.url}/v0/login`)).json()).data.passkey, false)
    await page.context().close()
  })
  it('a user of several workspaces signs in to the last used workspace, or to the one named', async () => {
    const { page, member } = await withPasskey()
    const other = await dashboard.workspace()
    await other.member('viewer', member.name)
    const where = async (more: object) => {
      const { status, body } = await login(page, await sign(page, await begin(page)), more)
      assert.equal(status, 200, JSON.stringify(body))
      return (await ask(page, 'GET', '/v0/me')).body.data.workspace.id
    }
    // Being added to a workspace does not change where a user signs in.
    assert.equal(await where({}), own.id)
    assert.equal(await where({ workspaceId: other.id }), other.id)
    assert.equal(await where({}), other.id)
    assert.equal(await where({ workspaceId: own.id }), own.id)
    const stranger = await dashboard.workspace()
    const refused = await login(page, await sign(page, await begin(page)), { workspaceId: stranger.id })
    assert.deepEqual([refused.status, /no member/.test(refused.body.error)], [403, true])
    await own.api.delete(`/v0/workspaces/${own.id}/members/${member.id}`)
    assert.equal(await where({}), other.id)
    await page.context().close()
  })
  it('a passkey registration works only for its user, and only with a session', async () => {
    const { page: first, passkey } = await withPasskey()
    const [member, other] = [await own.member('viewer'), await newBrowser()]
    await signInByLink(other.page, member)
    const { data } = (await ask(other.page, 'POST', '/v0/passkeys/options')).body
    const credential = await create(other.page, data)
    // Another user on the same host tries to register this user's credential.
    await signInByLink(first)
    const stolen = await ask(first, 'POST', '/v0/passkeys', { name: 'x', credential })
    assert.deepEqual([stolen.status, stolen.body.error.split(':')[0]], [400, 'credential'])
    assert.equal((await ask(other.page, 'POST', '/v0/passkeys', { name: 'x', credential })).status, 201)
    assert.equal((await ask(other.page, 'DELETE', `/v0/passkeys/${passkey.id}`)).status, 404)
    const renamed = { name: 'y' }
    assert.equal((await ask(other.page, 'PATCH', `/v0/passkeys/${passkey.id}`, renamed)).status, 404)
    const { body } = await ask(other.page, 'GET', '/v0/passkeys')
    const { id } = body.data.passkeys[0]
    assert.equal((await ask(other.page, 'PATCH', `/v0/passkeys/${id}`, renamed)).body.data.name, 'y')
    const keyed = await fetch(`${home}/v0/passkeys/options`, {
      method: 'POST',
      headers: { authorization: `Bearer ${own.api.key}` },
    })
    assert.equal(keyed.status, 403)
    await first.context().close()
    await other.page.context().close()
  })
})

describe('single sign-on', () => {
  const account = { sub: own.id, name: `Ada ${own.id}`, email: 'ada@example.com', email_verified: true }
  const newPage = async () => (await newBrowser()).page

  it('an identity linked in the account signs in', async () => {
    const page = await newPage()
    await signInByLink(page)
    provider.account = account
    await page.goto(`${home}/dashboard/account`)
    await page.getByRole('button', { name: 'Link Example ID' }).click()
    await page.getByRole('cell', { name: account.email }).waitFor()
    assert.equal(new URL(page.url()).search, '')
    await signOut(page)
    await page.getByRole('button', { name: 'Sign in with Example ID' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.context().close()
  })
  it('an unknown identity is told what to do', async () => {
    const page = await newPage()
    provider.account = { ...account, sub: 'somebody else' }
    await page.goto(`${home}/login`)
    await page.getByRole('button', { name: 'Sign in with Example ID' }).click()
    await page.getByRole('alert').getByText('ask an owner for an invitation').waitFor()
    await page.context().close()
  })
  it('an invitation is accepted by signing in', async () => {
    const page = await newPage()
    const sub = `invited to ${own.id}`
    provider.account = { ...account, sub, name: sub }
    const path = `/v0/workspaces/${own.id}/invitations`
    const { token } = (await own.api.post(path, { role: 'viewer' })).body.data
    await page.goto(`${home}/login#invitation=${token}`)
    await page.getByText('You are invited.').waitFor()
    await page.waitForURL(({ hash }) => hash === '')
    await page.getByRole('button', { name: 'Sign in with Example ID' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByText(sub).first().waitFor()
    await page.context().close()
  })
  it('a forged provider response neither signs in nor redirects', async () => {
    const page = await newPage()
    await page.goto(
      `${home}/login?state=login.x&code=y&iss=https://evil.example&redirect=https://evil.example`,
    )
    await page.getByRole('alert').getByText('sign in again').waitFor()
    assert.equal(page.url(), `${home}/login`)
    await page.context().close()
  })
})

describe('a program', () => {
  it('berth login signs in through the page that it shows', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-login-'))
    t.after(() => rm(folder, { recursive: true }))
    // Over SSH it opens no browser by itself.
    const programEnv = { PATH: process.env.PATH, XDG_CONFIG_HOME: folder, SSH_CONNECTION: 'x', NO_COLOR: '1' }
    const command = `${process.execPath} ${BUNDLE} login ${home}`
    const program = run('script', ['-qec', command, '/dev/null'], { env: programEnv })
    t.after(() => program.end())
    const shown = await until(
      'it shows a page',
      () => /code (\S+):\s+(http\S+)/.exec(program.output()) ?? undefined,
    )
    const [, code = '', url = ''] = shown
    await page.goto(url)
    await page.getByText('npx berth login-link').waitFor()
    await page.goto(`${home}/login#token=${await own.loginToken(owner.name)}`)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText(code, { exact: true }).waitFor()
    await dashboard.look('program')
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.getByRole('heading', { name: 'The program is signed in' }).waitFor()
    await until('it has ended', () => program.process.exitCode !== null)
    assert.match(program.output(), new RegExp(`signed in as ${owner.name}, workspace ${own.name}`))
    await signOut(page)
  })
})

describe('the account', () => {
  it('sessions are listed and ended, and the browser reported no errors', async () => {
    const elsewhere = await newBrowser()
    await signInByLink(elsewhere.page)
    await signInByLink(page)
    await page.goto(`${home}/dashboard/account`)
    const sessions = page.getByRole('region', { name: 'Sessions' })
    await sessions.getByText('this one').waitFor()
    await page.getByRole('button', { name: 'End all others' }).click()
    await sessions.getByRole('button', { name: 'End' }).first().waitFor({ state: 'detached' })
    await elsewhere.page.reload()
    await elsewhere.page.getByText('npx berth login-link').waitFor()
    const own = new URL(home).origin
    assert.deepEqual(
      dashboard.complaints.filter((line) => !line.startsWith(`asked ${own}`)),
      [],
    )
    await elsewhere.page.context().close()
  })
})
