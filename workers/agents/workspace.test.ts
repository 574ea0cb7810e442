import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { adoptIdentity, adoptManifest } from './workspace.ts'

describe('template files in a new agent', () => {
  const agent = { name: 'Ada', description: null, vibe: 'brisk\nand kind', emoji: '🦉' }

  it("template files in a new agent get the agent's own manifest", () => {
    const text = JSON.stringify({
      version: 1,
      agent: { name: ' Librarian ' },
      scripts: { start: 'true' },
      template: { slug: 'x' },
      _docs: 'kept',
    })
    assert.deepEqual(JSON.parse(adoptManifest(text, agent)), {
      version: 1,
      agent: { name: 'Ada', vibe: 'brisk\nand kind', emoji: '🦉' },
      scripts: { start: 'true' },
      _docs: 'kept',
    })
    assert.equal(adoptManifest(adoptManifest(text, agent), agent), adoptManifest(text, agent))
  })
  it('template files in a new agent get its identity, and keep other text', () => {
    const text = '# Who you are\n\n- **Name:** $& Bob\n- **Emoji:**\n- **Vibe:** slow\n\nI like rain.\n'
    const wanted =
      '# Who you are\n\n- **Name:** Ada\n- **Emoji:** 🦉\n- **Vibe:** brisk and kind\n\nI like rain.\n'
    assert.equal(adoptIdentity(text, agent), wanted)
    assert.equal(adoptIdentity('I am nobody.\n', agent), 'I am nobody.\n')
  })
})
