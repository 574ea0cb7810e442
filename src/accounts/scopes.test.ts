import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { grants, isOfInstance, isWrite, SCOPES } from '../http/principal.ts'

describe('scopes', () => {
  it('a scope grants itself, and admin grants all scopes of a workspace', () => {
    for (const scope of SCOPES) {
      assert.ok(grants([scope], scope), scope)
      assert.equal(grants(['admin'], scope), !isOfInstance(scope), scope)
    }
  })

  it('scopes that allow writing also allow reading', () => {
    assert.ok(grants(['org:files:write'], 'org:files:read'))
    assert.ok(grants(['org:write'], 'org:files:read'))
    assert.ok(grants(['org:write'], 'org:read'))
    assert.ok(!grants(['org:files:read'], 'org:files:write'))
    assert.ok(!grants(['org:read'], 'org:files:write'))
  })

  it('instance scopes neither grant other scopes nor are granted by them', () => {
    assert.ok(grants(['instance:write'], 'instance:read'))
    assert.ok(!grants(['instance:read'], 'instance:write'))
    assert.ok(!grants(['org:write'], 'instance:read'))
    for (const scope of SCOPES.filter((scope) => !isOfInstance(scope)))
      assert.ok(!grants(['instance:write'], scope), scope)
  })

  it('organisation scopes cover every resource, but not the other way round', () => {
    assert.ok(grants(['org:read'], 'org:groups:read'))
    assert.ok(!grants(['org:groups:read'], 'org:read'))
    assert.ok(!grants(['org:groups:write'], 'org:read'))
    assert.ok(!grants(['org:files:write'], 'org:groups:write'))
  })

  it('writing files includes private uploads, but not the other way round', () => {
    assert.ok(grants(['org:files:write'], 'org:private_files:write'))
    assert.ok(grants(['org:write'], 'org:private_files:write'))
    assert.ok(!grants(['org:private_files:write'], 'org:files:write'))
    assert.ok(!grants(['org:files:read'], 'org:private_files:write'))
  })

  it('scopes never add up to admin', () => {
    assert.ok(
      !grants(
        SCOPES.filter((scope) => scope !== 'admin'),
        'admin',
      ),
    )
    assert.ok(!grants([], 'org:read'))
  })

  it('a scope tells whether it allows changes', () => {
    assert.deepEqual(SCOPES.filter(isWrite).length, SCOPES.filter((scope) => !scope.endsWith('read')).length)
  })
})
