import { yaml } from '@codemirror/lang-yaml';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, highlightSpecialChars, lineNumbers, ViewPlugin } from '@codemirror/view';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { theme } from './theme.ts';

/** Matches screens that are wide enough for a side-by-side diff. */
const wide = '(min-width: 1100px)';
const subscribe = (listener: () => void) => {
  const media = window.matchMedia(wide);
  media.addEventListener('change', listener);
  return () => media.removeEventListener('change', listener);
};

/** Makes folded lines reachable by Tab, because the library unfolds them only on a click. */
const foldsByKeyboard: Extension = ViewPlugin.define(
  (view) => {
    const name = () => {
      for (const fold of view.dom.querySelectorAll<HTMLElement>('.cm-collapsedLines:not([tabindex])')) {
        fold.tabIndex = 0;
        fold.setAttribute('role', 'button');
      }
    };
    // Runs when CodeMirror measures, which is after it draws the lines.
    const request = () => view.requestMeasure({ key: foldsByKeyboard, read: () => null, write: name });
    request();
    return { update: request };
  },
  {
    eventHandlers: {
      keydown: (event) => {
        const { target } = event;
        if (event.key !== 'Enter' && event.key !== ' ') return false;
        if (!(target instanceof HTMLElement) || !target.matches('.cm-collapsedLines')) return false;
        target.click();
        return true;
      },
    },
  },
);

const readOnly = (label: string): Extension => [
  lineNumbers(),
  EditorView.lineWrapping,
  highlightSpecialChars(),
  yaml(),
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  // Lets keyboard users focus the read-only text to scroll it.
  EditorView.contentAttributes.of({
    tabindex: '0',
    'aria-label': label,
    'aria-readonly': 'true',
    role: 'textbox',
    'aria-multiline': 'true',
  }),
  foldsByKeyboard,
  theme(),
];

/**
 * Limits the time for inputs that differ almost everywhere; the diff is then less precise. `timeout` is in
 * milliseconds.
 */
const diffConfig = { scanLimit: 1_000, timeout: 300 };
const collapseUnchanged = { margin: 3, minSize: 5 };

/** Shows a diff of two strings: side by side, or unified on narrow screens. */
export default function DiffView({
  before,
  after,
  beforeLabel,
  afterLabel,
}: {
  readonly before: string;
  readonly after: string;
  readonly beforeLabel: string;
  readonly afterLabel: string;
}) {
  const host = useRef<HTMLDivElement>(null);
  const beside = useSyncExternalStore(subscribe, () => window.matchMedia(wide).matches);
  useEffect(() => {
    const parent = host.current as HTMLDivElement;
    if (beside) {
      const view = new MergeView({
        parent,
        a: { doc: before, extensions: readOnly(beforeLabel) },
        b: { doc: after, extensions: readOnly(afterLabel) },
        gutter: true,
        collapseUnchanged,
        diffConfig,
      });
      return () => view.destroy();
    }
    const view = new EditorView({
      parent,
      state: EditorState.create({
        doc: after,
        extensions: [
          readOnly(`${beforeLabel}, ${afterLabel}`),
          unifiedMergeView({
            original: before,
            mergeControls: false,
            highlightChanges: true,
            gutter: true,
            collapseUnchanged,
            diffConfig,
          }),
        ],
      }),
    });
    return () => view.destroy();
  }, [before, after, beforeLabel, afterLabel, beside]);
  return (
    <div className="overflow-hidden rounded-md border bg-surface">
      <div className="grid border-b bg-raised font-medium text-muted text-xs min-[1100px]:grid-cols-2">
        <p className="truncate px-3 py-1.5">
          <span aria-hidden="true" className="mr-1 text-bad">
            −
          </span>
          {beforeLabel}
        </p>
        <p className="truncate px-3 py-1.5">
          <span aria-hidden="true" className="mr-1 text-good">
            +
          </span>
          {afterLabel}
        </p>
      </div>
      <div ref={host} className="max-h-[70vh] overflow-auto" />
    </div>
  );
}
