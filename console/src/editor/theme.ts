import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** The editor theme. It uses the console's CSS variables, so it changes with the console's theme. */

const highlights = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: 'var(--info)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: 'var(--muted)' },
  { tag: [tags.typeName, tags.labelName, tags.meta], color: 'var(--warn)' },
]);

const look = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '0.8125rem', height: '100%' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono, ui-monospace, monospace)', lineHeight: '22px' },
  '.cm-content': { caretColor: 'var(--accent)', padding: '0.5rem 0' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'var(--accent-soft)',
  },
  '.cm-activeLine': { backgroundColor: 'color-mix(in oklab, var(--raised) 55%, transparent)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--muted)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { minWidth: '2.5rem', paddingRight: '0.5rem' },
  '.cm-activeLineGutter': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
  '.cm-foldGutter .cm-gutterElement': { cursor: 'pointer' },
  '.cm-foldPlaceholder': {
    backgroundColor: 'var(--raised)',
    color: 'var(--muted)',
    border: '1px solid var(--line)',
    padding: '0 0.35rem',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)', outline: '1px solid var(--accent)' },
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'var(--bad-soft)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--warn-soft)' },
  '.cm-searchMatch': { backgroundColor: 'var(--warn-soft)', outline: '1px solid var(--warn)' },
  '.cm-searchMatch.cm-searchMatch-selected': { backgroundColor: 'var(--accent-soft)' },
  '.cm-specialChar': { color: 'var(--bad)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad)',
    textDecorationThickness: '1px',
    textUnderlineOffset: '3px',
  },
  '.cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--warn)',
    textDecorationThickness: '1px',
    textUnderlineOffset: '3px',
  },
  '.cm-lintRange-active': { backgroundColor: 'var(--bad-soft)' },
  '.cm-lintPoint::after': { borderBottomColor: 'var(--bad)' },
  '.cm-gutter-lint': { width: '1.1rem' },
  '.cm-lint-marker': { width: '0.5rem', height: '0.5rem', borderRadius: '50%', margin: '0.4rem auto 0' },
  '.cm-lint-marker-error': { content: 'none', backgroundColor: 'var(--bad)' },
  '.cm-lint-marker-warning': { content: 'none', backgroundColor: 'var(--warn)' },
  '.cm-diagnostic': { padding: '0.3rem 0.6rem', borderLeftWidth: '3px', whiteSpace: 'pre-wrap' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--warn)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '0.5rem',
    boxShadow: 'var(--shadow)',
    overflow: 'hidden',
    maxWidth: 'min(36rem, 92vw)',
  },
  '.cm-tooltip.cm-tooltip-autocomplete': { overflow: 'visible' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {
    fontFamily: 'inherit',
    fontSize: '0.8125rem',
    maxHeight: '16rem',
    maxWidth: 'min(30rem, 88vw)',
    borderRadius: '0.5rem',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': {
    display: 'flex',
    gap: '0.75rem',
    padding: '0.15rem 0.6rem',
    lineHeight: '1.35rem',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionDetail': { marginLeft: 'auto', fontStyle: 'normal', color: 'var(--muted)', fontSize: '0.75rem' },
  'li[aria-selected] .cm-completionDetail': { color: 'inherit' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
  '.cm-tooltip.cm-completionInfo': {
    padding: '0.4rem 0.6rem',
    maxWidth: '18rem',
    fontFamily: 'inherit',
    fontSize: '0.75rem',
    lineHeight: '1.15rem',
  },
  '.cm-tooltip .cm-word': {
    padding: '0.4rem 0.6rem',
    maxWidth: '24rem',
    fontSize: '0.75rem',
    lineHeight: '1.15rem',
  },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
  '.cm-panels.cm-panels-bottom': { borderTop: '1px solid var(--line)' },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--line)' },
  '.cm-textfield': {
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--line-strong)',
    borderRadius: '0.3rem',
    color: 'inherit',
  },
  '.cm-button': {
    backgroundImage: 'none',
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--line)',
    borderRadius: '0.3rem',
    color: 'inherit',
  },
  '.cm-placeholder': { color: 'var(--muted)' },
  // Colors for the diff view.
  '.cm-changedLine, &.cm-merge-b .cm-changedLine, .cm-inlineChangedLine': { backgroundColor: 'var(--good-soft)' },
  '&.cm-merge-a .cm-changedLine': { backgroundColor: 'var(--bad-soft)' },
  '.cm-changedText, &.cm-merge-b .cm-changedText': {
    background: 'color-mix(in oklab, var(--good) 16%, transparent)',
  },
  '&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText': {
    background: 'color-mix(in oklab, var(--bad) 16%, transparent)',
  },
  // The default pale colors for comments and similar tokens have too little contrast on this background.
  '.cm-changedText > *, .cm-deletedText > *': { color: 'var(--text)' },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-soft)', paddingLeft: '6px' },
  '.cm-changedLineGutter, &.cm-merge-b .cm-changedLineGutter': { background: 'var(--good)' },
  '&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter': { background: 'var(--bad)' },
  '.cm-collapsedLines': {
    color: 'var(--muted)',
    background: 'var(--raised)',
    fontSize: '0.75rem',
    padding: '0.15rem 0.5rem',
  },
  // Most fonts lack the editor's default character (U+299A).
  '.cm-collapsedLines::before, .cm-collapsedLines::after': { content: '"···"' },
});

/** The nonce that the Content-Security-Policy requires on style elements; empty without a policy, as in development. */
const nonce = (): string =>
  globalThis.document?.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.content ?? '';

export const theme = (): Extension => {
  const known = nonce();
  return [look, syntaxHighlighting(highlights), known === '' ? [] : EditorView.cspNonce.of(known)];
};
