/** `berth audit`, and the entries of the operator's commands. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { openContext } from './context.ts'
import { addMember } from './workspaces/rows.ts'

const { berth, workspace } = await openContext()
const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

describe('berth audit', () => {
  it('berth audit lists commands that change something, and the error of a refused command', async () => {
    const { id, name } = await workspace()
    const user = `user-${randomUUID()}`
    const { id: userId } = JSON.parse(await berth('users', 'add', user, '-w', name, '--json'))
    const key = JSON.parse(await berth('keys', 'create', '-w', name, '-u', user, '--json'))
    await berth('keys', 'revoke', key.id)
    await berth('workspaces', 'set-plan', name, 'pro')
    await assert.rejects(berth('workspaces', 'set-plan', name, 'no-such-plan'))
    await berth('users', 'remove', user, '-w', name)
    await berth('keys', 'list', '-w', name)
    const printed = linesOf(await berth('audit', '-w', name, '--json')).reverse()
    const keyResource = `keys/${key.id}`
    assert.deepEqual(
      printed.map(({ action, resource, errorCode }) => [action, resource, errorCode]),
      [
        ['users add', `users/${userId}`, null],
        ['keys create', keyResource, null],
        ['keys revoke', keyResource, null],
        ['workspaces set-plan', `workspaces/${id}`, null],
        ['workspaces set-plan', `workspaces/${id}`, 'bad_request'],
        ['users remove', `users/${userId}`, null],
      ],
    )
    assert.ok(printed.every(({ via }) => via === 'terminal') && !JSON.stringify(printed).includes(key.token))
    const table = await berth('audit', '-w', name, '-r', keyResource, '--result', 'done', '-n', '1')
    assert.match(
      table,
      /^time +via +who +from +action +resource +result\n\S+ +terminal +- +- +keys revoke +keys\/\S+ +done$/,
    )
  })

  it('berth audit lists HTTP requests by user, and rejects filters that match nothing', async () => {
    const own = await workspace()
    const member = await addMember(own, 'member')
    await member.api.post('/v3/groups/public', { name: 'one' })
    await own.api.post('/v3/groups/public', { name: 'two' })
    const [entry, ...more] = linesOf(await berth('audit', '--user', member.name, '--json'))
    assert.deepEqual(
      [entry.action, entry.userName, entry.workspaceId, more],
      ['createGroup', member.name, own.id, []],
    )
    await assert.rejects(berth('audit', '--user', 'nobody-at-all'), /no user is named nobody-at-all/)
    await assert.rejects(berth('audit', '--key', 'x'), /--key: must be the id of a key/)
    await assert.rejects(berth('audit', '--from', 'soon'), /not a time/)
  })
})
