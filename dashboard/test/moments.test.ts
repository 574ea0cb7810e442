/** The dashboard in moments that need a decision: an agent without a model, and an agent that does not start. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { useStandIn as takeStandIn } from '../../test/contract/openclaw/context.ts'
import { STAND_IN } from '../../test/integration/agents/stand-in.ts'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { ensureEngines } from '../../test/support/engines.ts'
import { actionsOn, HOSTILE, openDashboard, withoutModel } from './support.ts'

const context = await openDashboard()
const { url, own, page, complaints, sql, look, signIn } = context
await ensureEngines()
await takeStandIn(context, own, { version: STAND_IN.slow, name: 'Keyed' })
const { button, ranNothing, row } = actionsOn(page)

describe('an agent at its start', () => {
  it('the form asks for a model provider if a new agent would have none', async () => {
    await signIn()
    const putBack = await withoutModel(page, [])
    const { secret } = (await own.api.post('/v0/secrets', { name: 'GEMINI_API_KEY', value: 'kept' })).body
    await page.goto(`${url}/dashboard/agents/new`)
    await page.getByLabel('Name', { exact: true }).fill('Keyed')
    // The workspace has one provider's key.
    await page.getByText('is in the workspace and will be attached').waitFor()
    await own.api.delete(`/v0/secrets/${secret.id}`)
    await page.reload()
    await page.getByLabel('Name', { exact: true }).fill('Keyed')
    await page.getByRole('radio', { name: 'Later' }).waitFor()
    await button('Create').click()
    assert.ok(await page.evaluate(() => document.activeElement?.matches('input[name=model]:invalid')))
    await page.getByRole('radio', { name: 'A provider, with a key' }).check()
    await page.getByRole('combobox', { name: 'Provider' }).selectOption('Anthropic')
    await page.getByLabel('Key', { exact: true }).fill('sk-typed')
    await look('agents-new-key')
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.method() === 'POST' && one.url().endsWith('/v0/agents')),
      button('Create').click(),
    ])
    const made = await own.api.get('/v0/secrets')
    const typed = made.body.secrets.find(({ name }: { name: string }) => name === 'ANTHROPIC_API_KEY')
    assert.deepEqual(request.postDataJSON(), { name: 'Keyed', secretIds: [typed.id] })
    await page.getByRole('list', { name: 'Startup' }).waitFor()
    const { agentId: keyed } = (await own.api.get('/v0/agents')).body.agents.at(-1)
    await own.api.delete(`/v0/agents/${keyed}`)
    await own.api.delete(`/v0/secrets/${typed.id}`)
    await putBack()
  })
  it('a failed start shows one sentence and its folded raw text, and a restart shows each step', async () => {
    const raw = `Invalid config at /home/node/.openclaw/openclaw.json:\n- agents: Unrecognized key: "${HOSTILE}"`
    const broken = await insertAgentRow(
      { query: sql },
      {
        workspaceId: own.id,
        name: 'Broken',
        status: 'not_running',
        statusReason: raw,
        engineVersion: '2026.1.99',
      },
    )
    const sentence = 'Its engine rejects its config.'
    await page.goto(`${url}/dashboard`)
    const health = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Health' }) })
    await health.getByText('An agent did not start:').waitFor()
    assert.equal(await page.getByText('Everything works.').count(), 0)
    await row('Broken').getByText(sentence).waitFor()
    await page.getByRole('link', { name: '1 failed' }).waitFor()
    await look('overview-failed')
    await health.getByRole('link', { name: 'Broken' }).click()
    await page.getByRole('heading', { name: 'This agent did not start' }).waitFor()
    await page.getByText('This agent’s engine is not responding').waitFor()
    assert.equal(await page.getByText(sentence).count(), 1)
    assert.equal(await page.getByText('Unrecognized key').count(), 1)
    assert.ok(!(await page.getByText('Unrecognized key').isVisible()))
    await look('agent-failed')
    await page.getByText('Reported error').click()
    await page.getByText('Unrecognized key').waitFor()
    await ranNothing()
    await look('agent-failed-raw')
    await page.getByRole('link', { name: 'Log of Broken' }).click()
    await page.waitForURL('**/logs')
    await page.goto(`${url}/dashboard/agents?state=failed`)
    await row('Broken').getByText(sentence).waitFor()
    assert.equal(await page.getByRole('list', { name: 'Agents' }).getByRole('listitem').count(), 1)
    await look('agents-failed')
    await row('Broken').getByText('Reported error').click()
    await row('Broken').getByText('Unrecognized key').waitFor()
    await page.goto(`${url}/dashboard/agents/${broken.agentId}`)
    const steps = page.getByRole('list', { name: 'Startup' })
    await button('Restart Broken').click()
    // The engine is not available, which is a different reason.
    await page.getByText(sentence).waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'This agent did not start' }).waitFor()
    // Another client restarts the agent: the open page shows each step.
    const operation = randomUUID()
    await sql('UPDATE agent SET purged_at = now() WHERE id = $1', [broken.id])
    const step = (name: string) =>
      steps.getByRole('listitem').filter({ hasText: name }).getByText('in progress')
    await sql(
      `INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id)
       VALUES ($1, $2, 'agent.restart', 'nobody', $3, $4)`,
      [operation, own.id, broken.id, broken.agentId],
    )
    await sql(
      `UPDATE operation SET state = 'running', step = 'image', lease_until = now() + interval '1 day' WHERE id = $1`,
      [operation],
    )
    await sql(
      `UPDATE agent SET status = 'starting', status_reason = NULL, start_operation_id = $2 WHERE id = $1`,
      [broken.id, operation],
    )
    await step('Prepare the engine').waitFor()
    await sql(`UPDATE operation SET step = 'gateway' WHERE id = $1`, [operation])
    await step('Start its gateway').waitFor()
    await look('agent-starting')
    await sql(`UPDATE operation SET state = 'failed', finished_at = now() WHERE id = $1`, [operation])
    const late = 'the gateway was not ready in time'
    await sql(`UPDATE agent SET status = 'not_running', status_reason = $2 WHERE id = $1`, [broken.id, late])
    await page.getByText('Its engine did not start in time.').waitFor()
    await steps.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText('is starting').first().waitFor()
    await sql('UPDATE agent SET deleted_at = now(), purged_at = now() WHERE id = $1', [broken.id])
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
