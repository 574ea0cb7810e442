/** An agent's console, files and snapshots, in a real browser. They need no engine. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newAgent, useStandIn as takeStandIn } from '../../test/contract/openclaw/context.ts'
import { until } from '../../test/support/processes.ts'
import { HOST_MS, HOSTILE, openDashboard } from './support.ts'

const context = await openDashboard()
const { url, own, page, complaints, signIn, look } = context
await takeStandIn(context, own)
const agent = await newAgent(own.api, { name: 'Worker' })
const at = `${url}/dashboard/agents/${agent.agentId}`
await signIn()

const shown = page.locator('.xterm-rows')
/** Types a line into the console. */
async function type(line: string): Promise<void> {
  await page.keyboard.type(line)
  await page.keyboard.press('Enter')
}
/** Waits until the console shows a text, whatever the line breaks. */
const says = (text: string) => shown.getByText(text).last().waitFor()

describe("an agent's console", () => {
  const console = page.getByRole('textbox', { name: 'Console' })
  it('the console is a terminal: programs have its size, Tab completes, and Ctrl-C interrupts', async () => {
    await page.goto(`${at}/console`)
    await says('clawd')
    await console.focus()
    await type('[ "$(tput cols)" -gt 80 ] && echo "wide $((40 + 2))"')
    await says('wide 42')
    await page.keyboard.type('cd worksp')
    await page.keyboard.press('Tab')
    await type(' && echo "in $(basename "$PWD")"')
    await says('in workspace')
    await type('echo "begun $((1))"; sleep 600')
    await says('begun 1')
    await page.keyboard.press('Control+c')
    await type('echo "interrupted $((2))"')
    await says('interrupted 2')
  })
  it('a reload connects to the same shell, and shows what it has written', async () => {
    await type('cd; kept=yes')
    await page.reload()
    await says('interrupted 2')
    await console.focus()
    await type('echo "kept: $kept"')
    await says('kept: yes')
  })
  it('output that queries the terminal runs nothing', async () => {
    await own.api.post(`${agent.path}/console/exec`, {
      command: `printf '%s\\n\\033[c\\033[6n\\033[>c\\033]10;?\\007\\033]8;;javascript:window.ran=1\\007link\\033]8;;\\007\\033[38;2;255;0;0mred\\n' ${JSON.stringify(HOSTILE).replaceAll('$', '\\$')} > hostile.txt`,
    })
    await type('cat ~/clawd/hostile.txt')
    await says('red')
    await until('a line without the terminal’s answers', async () => {
      await page.keyboard.press('Control+c')
      await type('clear; echo "after$((1))"')
      await shown.getByText('after1').last().waitFor({ timeout: 2000 })
      return true
    })
    assert.equal(await page.evaluate('window.ran'), undefined)
  })
  it('a shell that ends is reported, and a new one opens; Shift+Tab leaves the terminal', async () => {
    await type('exit 3')
    await says('exit code 3')
    await page.getByRole('button', { name: 'New terminal' }).click()
    await says('clawd')
    await type('ls -la --color=always; git log --oneline | head -5')
    await says('workspace')
    await page.keyboard.press('Shift+Tab')
    assert.notEqual(await page.evaluate('document.activeElement.className'), 'xterm-helper-textarea')
    await look('console')
  })
})

describe("an agent's files", () => {
  /** The text in the editor, which is in a shadow root. */
  const editor = page.locator('.cm-content')
  const read = async (path: string) => (await own.api.get(`${agent.path}/files`, { path })).body
  const run = (command: string) => own.api.post(`${agent.path}/console/exec`, { command })

  it('the tree opens folders, and a new file is created, edited and saved', async () => {
    await page.getByRole('link', { name: 'Files', exact: true }).last().click()
    await page.getByRole('button', { name: 'workspace' }).click()
    await page.getByRole('button', { name: 'New file' }).click()
    await page.getByLabel('Path').fill('workspace/notes/plan.md')
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await editor.click()
    await page.keyboard.type('# Plan')
    await page.getByText('Not saved yet').waitFor()
    await page.keyboard.press('Control+s')
    await page.getByText('Saved', { exact: true }).waitFor()
    assert.equal(await read('workspace/notes/plan.md'), '# Plan')
  })
  it('the arrow keys move through the tree, and open and close its folders', async () => {
    const has = (name: string) =>
      page.waitForFunction((name) => document.activeElement?.textContent?.includes(name), name)
    await page.getByRole('button', { name: 'notes', exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('button', { name: 'plan.md' }).waitFor()
    await page.keyboard.press('ArrowRight')
    await has('plan.md')
    await page.keyboard.press('ArrowLeft')
    await has('notes')
    await page.keyboard.press('ArrowLeft')
    await page.getByRole('button', { name: 'plan.md' }).waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await has('notes')
    await page.keyboard.press('ArrowLeft')
    await has('workspace')
  })
  it('leaving an unsaved text asks first, and the URL contains the file', async () => {
    const question = page.getByRole('dialog').filter({ hasText: 'Leave without saving?' })
    await editor.click()
    // Outside the editor these letters navigate and open a dialog.
    await page.keyboard.type(' go to / now?')
    assert.equal(await page.getByRole('dialog').count(), 0)
    await page.getByRole('button', { name: 'manifest.json' }).click()
    await look('files-unsaved')
    await question.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'Logs' }).click()
    await question.waitFor()
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'detached' })
    await page.getByText('Not saved yet', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'manifest.json' }).click()
    await question.getByRole('button', { name: 'Leave' }).click()
    await editor.getByText('"name"').first().waitFor()
    await page.goto(`${at}/files?file=workspace%2Fnotes%2Fplan.md`)
    await editor.getByText('# Plan').waitFor()
    assert.equal(await read('workspace/notes/plan.md'), '# Plan')
  })
  it('a save does not overwrite a concurrent change, and shows the difference', async () => {
    await run('printf theirs > workspace/notes/plan.md')
    await editor.click()
    await page.keyboard.press('End')
    await page.keyboard.type(' of ours')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Somebody else has changed this file since you opened it').waitFor()
    await page.locator('.cm-deletedChunk').getByText('theirs').waitFor()
    assert.equal(await read('workspace/notes/plan.md'), 'theirs')
    await look('files-conflict')
    await page.getByRole('button', { name: 'Save mine over it' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    assert.equal(await read('workspace/notes/plan.md'), '# Plan of ours')
  })
  it('text typed during a save is not shown as saved', async () => {
    const held = Promise.withResolvers<void>()
    await page.route('**/files?**', async (route) => {
      if (route.request().method() === 'PUT') await held.promise
      await route.continue()
    })
    await editor.click()
    await page.keyboard.press('End')
    await page.keyboard.type(', first')
    await page.keyboard.press('Control+s')
    await page.keyboard.type(', second')
    await page.keyboard.press('Control+s')
    const answered = page.waitForResponse((answer) => answer.request().method() === 'PUT')
    held.resolve()
    await answered
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.getByText('Not saved yet', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    assert.equal(await read('workspace/notes/plan.md'), '# Plan of ours, first, second')
  })
  it('files are uploaded, and markup and binary files run nothing', async () => {
    await page.locator('input[type=file]').setInputFiles([
      { name: 'page.html', mimeType: 'text/html', buffer: Buffer.from(HOSTILE) },
      { name: 'data.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 1, 255]) },
    ])
    await page.getByRole('button', { name: 'uploads' }).click()
    await page.getByRole('button', { name: 'data.bin' }).click()
    await page.getByText('This is not a text file').waitFor()
    await page.getByRole('button', { name: 'page.html' }).click()
    await editor.getByText('window.ran').first().waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await look('agent-files')
    await run('for i in $(seq 400); do echo "line $i"; done > workspace/long.txt')
    await page.goto(`${at}/files?file=workspace%2Flong.txt`)
    await editor.getByText('line 12', { exact: true }).waitFor()
    await look('agent-files-long')
  })
  it('a file is deleted', async () => {
    await page.goto(`${at}/files?file=workspace%2Fuploads%2Fpage.html`)
    // The tree may appear after the file.
    await page.getByRole('button', { name: 'page.html' }).waitFor()
    await page.getByRole('region', { name: 'page.html' }).getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'page.html' }).waitFor({ state: 'detached' })
    assert.equal(
      (await own.api.get(`${agent.path}/files`, { path: 'workspace/uploads/page.html' })).status,
      404,
    )
  })
})

describe("an agent's snapshots", () => {
  const article = (cid: string) => page.getByRole('article').filter({ has: page.getByTitle(cid) })
  const button = (cid: string, name: string) => article(cid).getByRole('button', { name })
  /**
   * Takes a snapshot, and waits until it is shown. Berth also takes automatic snapshots during the test.
   * @returns the CID of the newest snapshot whose difference contains `changed`.
   */
  async function take(changed = ''): Promise<string> {
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/snapshots/sync'))
    await page.getByRole('button', { name: 'Take a snapshot' }).click()
    const { operation } = await (await answered).json()
    if (operation) await own.api.finished(operation.id)
    const { snapshots } = (await own.api.get(`${agent.path}/snapshots`)).body
    const isOne = ({ contentDiff }: { contentDiff: string | null }) =>
      contentDiff?.includes(changed) ?? !changed
    const { snapshotCid } = snapshots.find(isOne)
    await article(snapshotCid).waitFor()
    return snapshotCid
  }
  const taken: string[] = []

  it('a new snapshot shows what changed', async () => {
    await page.getByRole('link', { name: 'Snapshots' }).click()
    taken.push(await take())
    await page.getByText('Newest', { exact: true }).waitFor()
    await own.api.post(`${agent.path}/console/exec`, {
      command: `printf '%s' ${JSON.stringify(HOSTILE)} > workspace/second.txt`,
    })
    const newest = article(await take('workspace/second.txt'))
    await newest.getByText('What changed').click()
    await newest.getByText('workspace/second.txt').first().waitFor()
    await newest.getByText('window.ran').first().waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await look('snapshots')
  })
  it('any two snapshots are compared at a URL that can be shared', async () => {
    await own.api.post(`${agent.path}/console/exec`, { command: 'printf third > workspace/third.txt' })
    const third = await take('workspace/third.txt')
    const [first = ''] = taken
    await button(third, 'Compare').click()
    const compared = page.getByRole('region', { name: 'Difference between two snapshots' })
    await compared.getByText('Choose Compare on another snapshot').waitFor()
    await button(first, 'Compare').click()
    for (const file of ['workspace/second.txt', 'workspace/third.txt'])
      await compared.getByText(file, { exact: true }).waitFor()
    await compared.getByText('added').first().waitFor()
    await look('snapshots-compare')
    await page.reload()
    await compared.getByText('workspace/second.txt').click()
    await compared.getByText('window.ran').waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await compared.getByRole('link', { name: 'Swap sides' }).click()
    await compared.getByText('removed').first().waitFor()
    // For two invented snapshots, the page says what is wrong.
    await page.goto(`${at}/snapshots?from=${encodeURIComponent(HOSTILE)}&to=bafkqaaa`)
    await compared.getByRole('alert').waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await compared.getByRole('link', { name: 'Close' }).click()
    await compared.waitFor({ state: 'detached' })
  })
  it('undoing a reset also restores changes that were in no snapshot before it', async () => {
    const [first = ''] = taken
    await own.api.post(`${agent.path}/console/exec`, { command: 'printf fourth > workspace/fourth.txt' })
    await button(first, 'Reset').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Reset' }).click()
    await dialog.waitFor({ state: 'detached', timeout: HOST_MS })
    const statusOf = async (name: string) =>
      (await own.api.get(`${agent.path}/files`, { path: `workspace/${name}` })).status
    assert.equal(await statusOf('second.txt'), 404)
    await page.getByText('The workspace was reset to the chosen snapshot.').waitFor()
    await look('snapshots-restored')
    await page.getByRole('button', { name: 'Undo' }).click()
    await until('what it was is back', async () => (await statusOf('fourth.txt')) === 200)
    assert.equal(await statusOf('second.txt'), 200)
  })
})

it('the browser reported no errors', () => assert.deepEqual(complaints, []))
