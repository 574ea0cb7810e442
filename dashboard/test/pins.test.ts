/** Pins by CID, from the dialog to the file. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { sha256 } from 'multiformats/hashes/sha2'
import { until } from '../../test/support/processes.ts'
import { openDashboard } from './support.ts'

const { url, own, page, complaints, signIn, look } = await openDashboard()
await signIn()

describe('pins by CID', () => {
  it('a failed pin shows what to do, and is retried and removed', async () => {
    await page.goto(`${url}/dashboard/files/pins`)
    await page.getByText('No pins in progress').waitFor()
    await page.getByRole('button', { name: 'Pin a CID' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('CID').fill('nonsense')
    await dialog.getByRole('button', { name: 'Pin a CID' }).click()
    await dialog.getByRole('alert').waitFor()
    const missing = await sha256.digest(Buffer.from(own.id))
    await dialog.getByLabel('CID').fill(`${CID.createV1(raw.code, missing)}`)
    await dialog.getByLabel('Name').fill('cannot be found')
    const nodes = dialog.getByLabel('Nodes that have it')
    // The field accepts its own example.
    const away = '/ip4/127.0.0.1/tcp/1/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA'
    await nodes.fill(`${await nodes.getAttribute('placeholder')}\n${away}`)
    await dialog.getByRole('button', { name: 'Pin a CID' }).click()
    // The dialog follows the pin.
    await dialog.getByText('cannot be found').waitFor()
    await dialog.getByText('failed').waitFor()
    await look('pin-failed')
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByText('None of the named nodes').waitFor()
    await look('pins')
    const [failed] = (await own.api.get('/v3/files/public/pin_by_cid')).body.data.jobs
    const changes: string[] = []
    page.on('request', (request) => {
      if (request.method() !== 'GET') changes.push(`${request.method()} ${new URL(request.url()).pathname}`)
    })
    await page.getByRole('button', { name: 'Try again' }).click()
    await until('it has another operation', async () => {
      const { body } = await own.api.get('/v0/operations', { target: failed.id, kind: 'pin.add' })
      return body.data.operations.length === 2
    })
    assert.deepEqual(changes, [`POST /v0/files/public/pin_by_cid/${failed.id}/retry`])
    page.removeAllListeners('request')
    await page.getByText('None of the named nodes').waitFor()
    await page.goto(`${url}/dashboard/operate/operations`)
    await page.getByRole('link', { name: 'cannot be found' }).first().click()
    await page.waitForURL(`${url}/dashboard/files/pins`)
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Go to a page').fill(failed.cid)
    await page.getByRole('option', { name: 'cannot be found' }).click()
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No pins in progress').waitFor()
  })
  it('the dialog of a completed pin links to its file', async () => {
    await page.goto(`${url}/dashboard/files/pins`)
    await page.getByRole('button', { name: 'Pin a CID' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('CID').fill(`${CID.createV1(raw.code, identity.digest(Buffer.from(own.id)))}`)
    await dialog.getByLabel('Name').fill('came.txt')
    await dialog.getByRole('button', { name: 'Pin a CID' }).click()
    await dialog.getByRole('link', { name: 'Open the file' }).click()
    await page.getByRole('heading', { name: 'came.txt' }).waitFor()
  })
})

it('the browser reported no errors', () => assert.deepEqual(complaints, []))
