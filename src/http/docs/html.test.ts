import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { html, markdown } from './html.ts'

describe('html', () => {
  it('html escapes text and leaves HTML unchanged', () => {
    const inner = html`<b>${'<i>'}</b>`
    assert.equal(
      html`<p title="${'"&\''}">${inner}</p>`.text,
      '<p title="&quot;&amp;&#39;"><b>&lt;i&gt;</b></p>',
    )
  })

  it('html joins lists and renders nothing for missing values', () => {
    assert.equal(html`${[1, 'a', [html`<br>`]]}${undefined}${null}${false}`.text, '1a<br>')
  })
})

describe('markdown', () => {
  it('markdown renders a double backslash as one', () => {
    assert.equal(markdown('any of " \\\\.').text, '<p>any of &quot; \\.</p>')
  })

  it('markdown supports paragraphs, code, strong and emphasis', () => {
    const { text } = markdown('**One** `a*b*` *two*\n\nThree')
    assert.equal(text, '<p><strong>One</strong> <code>a*b*</code> <em>two</em></p><p>Three</p>')
  })

  it('markdown lets no HTML through', () => {
    assert.equal(markdown('`<b>` <script>').text, '<p><code>&lt;b&gt;</code> &lt;script&gt;</p>')
  })
})
