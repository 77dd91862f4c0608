import { autocompletion, type CompletionSource, startCompletion } from '@codemirror/autocomplete';
import { historyField, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { indentUnit } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { Compartment, EditorState, type EditorStateConfig, Prec } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { basicSetup } from 'codemirror';
import { type Ref, type RefObject, useEffect, useId, useImperativeHandle, useLayoutEffect, useRef } from 'react';
import type { Mark } from './faults.ts';
import { type Known, type Proposal, proposalsAt } from './proposals.ts';
import { theme } from './theme.ts';

export interface EditorHandle {
  /** Goes to this place and stays there. From 1. */
  goTo(line: number, column: number): void;
  focus(): void;
}

/** What an editor leaves behind for the next one of the same text: what can be undone, and where one was. */
export type EditorMemory = RefObject<unknown>;

export interface CodeEditorProps {
  readonly label: string;
  readonly value: string;
  readonly onChange?: (value: string) => void;
  /** Ctrl-S. */
  readonly onSave?: () => void;
  readonly marks?: readonly Mark[];
  /** What completion knows; null: none yet. */
  readonly known?: Known | null;
  readonly readOnly?: boolean;
  readonly memory?: EditorMemory | undefined;
  readonly ref?: Ref<EditorHandle>;
}

/** Proposals as the editor wants them. */
const source =
  (known: () => Known | null): CompletionSource =>
  ({ state, pos, explicit }) => {
    const there = known();
    if (there === null) return null;
    const found = proposalsAt(state.doc.toString(), pos, there);
    if (found === null) return null;
    // Without a word, only who asks is answered, or who has just taken a key.
    const isWord = pos > found.from || /[-:[{,]\s$/.test(state.sliceDoc(Math.max(0, pos - 2), pos));
    if (!explicit && !isWord && !/\$\{\{\s*$/.test(state.sliceDoc(Math.max(0, pos - 5), pos))) return null;
    return {
      from: found.from,
      validFor: /^[\w.-]*$/,
      options: found.options.map((option) => ({
        label: option.label,
        detail: option.detail,
        ...(option.info === '' ? {} : { info: option.info }),
        boost: option.required ? 2 : 0,
        apply: taking(option),
      })),
    };
  };

const taking =
  ({ apply, goesOn }: Proposal) =>
  (view: EditorView, _: unknown, from: number, to: number) => {
    view.dispatch({
      changes: { from, to, insert: apply },
      selection: { anchor: from + apply.length },
      userEvent: 'input.complete',
      scrollIntoView: true,
    });
    if (goesOn) startCompletion(view);
  };

const kept = { history: historyField };

/** A text to write at: where there is a memory, with what can be undone there, and whatever differs as one more step. */
function stateOf(text: string, memory: unknown, config: EditorStateConfig): EditorState {
  if (memory == null) return EditorState.create({ ...config, doc: text });
  const before = EditorState.fromJSON(memory, config, kept);
  return before.update(changeTo(before, text) ?? {}).state;
}

const changeTo = (state: EditorState, text: string) =>
  state.doc.toString() === text ? null : { changes: { from: 0, to: state.doc.length, insert: text } };

function show(view: EditorView, text: string): void {
  const change = changeTo(view.state, text);
  if (change !== null) view.dispatch(change);
}

/**
 * Writes YAML. The text is the caller's; what is typed comes out by `onChange`, and a value that differs from the text
 * takes its place as one step that can be undone.
 */
export default function CodeEditor({
  label,
  value,
  onChange,
  onSave,
  marks,
  known = null,
  readOnly = false,
  memory,
  ref,
}: CodeEditorProps) {
  const hint = useId();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onChange, onSave, known, value });
  latest.current = { onChange, onSave, known, value };
  const writable = useRef(new Compartment());

  useEffect(() => {
    const access = writable.current;
    const made = new EditorView({
      parent: host.current as HTMLDivElement,
      state: stateOf(latest.current.value, memory?.current, {
        extensions: [
          Prec.highest(
            keymap.of([
              {
                key: 'Mod-s',
                preventDefault: true,
                run: () => {
                  latest.current.onSave?.();
                  return true;
                },
              },
            ]),
          ),
          basicSetup,
          keymap.of([indentWithTab]),
          indentUnit.of('  '),
          EditorState.tabSize.of(2),
          yaml(),
          lintGutter(),
          autocompletion({ override: [source(() => latest.current.known)], icons: false, maxRenderedOptions: 60 }),
          access.of([]),
          theme(),
          EditorView.contentAttributes.of({ 'aria-label': label, 'aria-describedby': hint, tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      if (memory !== undefined) memory.current = made.state.toJSON(kept);
      made.destroy();
      view.current = null;
    };
  }, [label, hint, memory]);

  useEffect(() => {
    view.current?.dispatch({
      effects: writable.current.reconfigure(
        readOnly ? [EditorState.readOnly.of(true), EditorView.contentAttributes.of({ 'aria-readonly': 'true' })] : [],
      ),
    });
  }, [readOnly]);

  // Before anything else may be typed: a value that comes late is one that was typed already, and not to be put back.
  useLayoutEffect(() => {
    if (view.current !== null) show(view.current, value);
  }, [value]);

  useEffect(() => {
    const there = view.current;
    if (there === null || marks === undefined) return;
    const { length } = there.state.doc;
    there.dispatch(
      setDiagnostics(
        there.state,
        marks.map(({ from, to, severity, message }) => ({
          from: Math.min(from, length),
          to: Math.min(to, length),
          severity,
          message,
        })),
      ),
    );
  }, [marks]);

  useImperativeHandle(
    ref,
    () => ({
      goTo(line, column) {
        const there = view.current;
        if (there === null) return;
        const { from, to } = there.state.doc.line(Math.min(Math.max(line, 1), there.state.doc.lines));
        const anchor = Math.min(from + column - 1, to);
        there.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
        there.focus();
      },
      focus: () => view.current?.focus(),
    }),
    [],
  );

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div ref={host} className="min-h-0 flex-1 overflow-hidden" />
      <p id={hint} className="sr-only">
        Tab indents. Press Escape, then Tab to leave the editor. Ctrl and Space proposes what fits here. Ctrl and S
        saves.
      </p>
    </div>
  );
}
