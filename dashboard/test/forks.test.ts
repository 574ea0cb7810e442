/** Forks of an agent and of a snapshot, in a real browser. The agents are rows, which no worker starts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { insertSnapshot } from '../../test/contract/agents/rows.ts'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { actionsOn, openDashboard } from './support.ts'

const context = await openDashboard()
const { url, own, page, complaints, sql, look, signIn } = context
const { button, dialog, inDialog } = actionsOn(page)
const main = page.locator('main')
await sql(`CREATE FUNCTION never_start() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.purged_at := now();
    RETURN NEW;
  END $$;
  CREATE TRIGGER never_start BEFORE INSERT ON agent FOR EACH ROW WHEN (NEW.workspace_id = '${own.id}')
    EXECUTE FUNCTION never_start()`)
const plan = `five ${own.id}`
await sql(
  'INSERT INTO plan (name, agent_limit, channels, custom_domains, pin_by_cid) VALUES ($1, 5, true, true, true)',
  [plan],
)
await sql('UPDATE workspace SET plan = $2 WHERE id = $1', [own.id, plan])
const ada = await insertAgentRow({ query: sql }, { workspaceId: own.id, name: 'Ada', status: 'not_running' })
const older = await insertSnapshot(context, own, ada, { 'a.txt': 'older' })
await insertSnapshot(context, own, ada, { 'a.txt': 'newest' })
const at = `${url}/dashboard/agents/${ada.agentId}`
const agents = async (): Promise<
  { agentId: string; name: string; forkedFrom: string; snapshotCid: string }[]
> => (await own.api.get('/v0/agents')).body.agents

describe('forks', () => {
  it('an agent is forked from its menu, and its fork names it', async () => {
    await signIn()
    await page.goto(`${at}/settings`)
    await button('More about Ada').click()
    await page.getByRole('menuitem', { name: 'Fork' }).click()
    await dialog.getByText('with this one’s workspace as it is now').waitFor()
    await look('fork-agent')
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'Ada fork')
    await dialog.getByLabel('Name').fill('Byron')
    await inDialog('Fork').click()
    await page.waitForURL(/\/agents\/new\?made=x/)
    const fork = (await agents()).find(({ name }) => name === 'Byron')
    assert.equal(fork?.forkedFrom, ada.agentId)
    await page.goto(`${url}/dashboard/agents/${fork.agentId}/settings`)
    await main.getByRole('link', { name: `Fork of ${ada.agentId}` }).waitFor()
    await look('fork-of')
  })

  it('a snapshot is forked several times, and the list shows the forks', async () => {
    await page.goto(`${at}/snapshots`)
    const article = page.getByRole('article').filter({ hasText: older.commitSha.slice(0, 7) })
    await article.getByRole('button', { name: 'Fork' }).click()
    await dialog.getByText('with the workspace of this snapshot').waitFor()
    await dialog.getByLabel('Number of forks').fill('2')
    await look('fork-snapshot')
    await inDialog('Fork').click()
    await page.waitForURL(/\/dashboard\/agents$/)
    await main.getByText('Ada fork 2').waitFor()
    const forks = (await agents()).filter(({ name }) => name.startsWith('Ada fork'))
    assert.deepEqual(
      forks.map(({ snapshotCid }) => snapshotCid),
      [older.cid, older.cid],
    )
  })

  it('a fork beyond the limit of the plan says how many were made', async () => {
    await page.goto(`${at}/snapshots`)
    await page.getByRole('article').first().getByRole('button', { name: 'Fork' }).click()
    await dialog.getByLabel('Number of forks').fill('3')
    await inDialog('Fork').click()
    await page.getByRole('dialog', { name: '1 of 3 forks made' }).getByText('Agent limit reached').waitFor()
    await look('fork-limit')
    await button('Close').click()
    assert.equal((await agents()).length, 5)
  })

  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
