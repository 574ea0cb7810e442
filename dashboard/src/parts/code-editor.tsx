import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { search, searchKeymap } from '@codemirror/search'
import { EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'

const look = EditorView.theme({
  // As high as its text: the page scrolls, which works with any keyboard.
  '&': { fontSize: '13px', color: 'var(--color-ink)' },
  '.cm-scroller': { fontFamily: 'ui-monospace, monospace' },
  '.cm-gutters': {
    backgroundColor: 'var(--color-card)',
    color: 'var(--color-soft)',
    borderRight: '1px solid var(--color-line)',
  },
  '.cm-cursor': { borderLeftColor: 'var(--color-ink)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--color-tint) !important',
  },
  '.cm-panels': { backgroundColor: 'var(--color-card)', color: 'var(--color-ink)' },
})
const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--color-accent)' },
  { tag: tags.string, color: 'var(--color-good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--color-busy)' },
])

/** A JSON editor. It is in a shadow root, where its styles are style sheets, which the page's policy allows. */
export function CodeEditor({
  label,
  value,
  onChange,
}: {
  label: string
  /** The initial text. A later value replaces the text unless it equals what was typed. */
  value: string
  onChange: (value: string) => void
}) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const changed = useRef(onChange)
  changed.current = onChange
  const first = useRef(value)
  useEffect(() => {
    if (!host.current) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const state = EditorState.create({
      doc: first.current,
      extensions: [
        lineNumbers(),
        foldGutter(),
        history(),
        bracketMatching(),
        search(),
        json(),
        syntaxHighlighting(colors),
        look,
        EditorView.lineWrapping,
        // The keyboard reaches this scroller. axe recognizes only elements with a tabindex.
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) changed.current(state.doc.toString())
        }),
      ],
    })
    const made = new EditorView({ parent: root, root, state })
    view.current = made
    return () => made.destroy()
  }, [label])
  useEffect(() => {
    const now = view.current
    if (now && now.state.doc.toString() !== value)
      now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } })
  }, [value])
  return <div ref={host} className="overflow-hidden rounded-xl border border-line bg-card" />
}
