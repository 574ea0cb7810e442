/** CodeMirror in a shadow root, where its styles are adopted style sheets, which the page's policy allows. */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { css } from '@codemirror/lang-css'
import { html } from '@codemirror/lang-html'
import { javascript } from '@codemirror/lang-javascript'
import { json } from '@codemirror/lang-json'
import { markdown } from '@codemirror/lang-markdown'
import { python } from '@codemirror/lang-python'
import { yaml } from '@codemirror/lang-yaml'
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { unifiedMergeView } from '@codemirror/merge'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'

const LANGUAGES: Record<string, () => Extension> = {
  css,
  html,
  htm: html,
  js: () => javascript(),
  mjs: () => javascript(),
  ts: () => javascript({ typescript: true }),
  tsx: () => javascript({ typescript: true, jsx: true }),
  jsx: () => javascript({ jsx: true }),
  json,
  md: () => markdown(),
  py: () => python(),
  yaml: () => yaml(),
  yml: () => yaml(),
}

/** The page's colours, which follow its colour scheme. */
const look = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', backgroundColor: 'var(--color-card)', color: 'var(--color-ink)' },
  '.cm-scroller': { fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace', overflow: 'auto' },
  '.cm-gutters': {
    backgroundColor: 'var(--color-card)',
    color: 'var(--color-soft)',
    borderRight: '1px solid var(--color-line)',
  },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--color-tint) 45%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--color-ink)' },
  '&.cm-focused': { outline: 'none' },
})
const colours = HighlightStyle.define(
  defaultHighlightStyle.specs.map(({ color, ...spec }) => ({
    ...spec,
    ...(color && { color: `color-mix(in srgb, ${color} 60%, var(--color-ink))` }),
  })),
)

export interface EditorOptions {
  place: HTMLElement
  path: string
  text: string
  label: string
  /** The text to compare with, if a difference is shown. */
  original?: string
  onChange: (text: string) => void
  onSave: () => void
}

/** @returns a function that removes the editor. */
export function openEditor({
  place,
  path,
  text,
  label,
  original,
  onChange,
  onSave,
}: EditorOptions): () => void {
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' })
  const save = () => {
    onSave()
    return true
  }
  const language = LANGUAGES[path.split('.').at(-1)?.toLowerCase() ?? '']
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        syntaxHighlighting(colours),
        EditorView.lineWrapping,
        // The keyboard reaches this scroller. axe recognizes only elements with a tabindex.
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        look,
        // Tab leaves the editor, so that keyboard users are not trapped.
        keymap.of([
          { key: 'Mod-s', preventDefault: true, run: save },
          ...defaultKeymap,
          ...historyKeymap,
          ...searchKeymap,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString())
        }),
        language?.() ?? [],
        original === undefined ? [] : unifiedMergeView({ original, mergeControls: false }),
      ],
    }),
  })
  return () => view.destroy()
}
