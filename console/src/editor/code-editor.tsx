import { autocompletion, type CompletionSource, startCompletion } from '@codemirror/autocomplete';
import { historyField, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { indentUnit } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { Compartment, EditorState, type EditorStateConfig, Prec } from '@codemirror/state';
import { EditorView, hoverTooltip, keymap } from '@codemirror/view';
import { basicSetup } from 'codemirror';
import { type Ref, type RefObject, useEffect, useId, useImperativeHandle, useLayoutEffect, useRef } from 'react';
import type { Mark } from './faults.ts';
import { type Proposal, proposalsAt } from './proposals.ts';
import { theme } from './theme.ts';
import { hoverAt, type Known } from './vocabulary.ts';

export interface EditorHandle {
  /** Moves the cursor to a line and column, which are both counted from 1, and focuses the editor. */
  goTo(line: number, column: number): void;
  focus(): void;
}

/** Undo history and cursor. An editor saves them for the next editor of the same text. */
export type EditorMemory = RefObject<unknown>;

export interface CodeEditorProps {
  readonly label: string;
  readonly value: string;
  readonly onChange?: (value: string) => void;
  /** Called on Ctrl-S or Cmd-S. */
  readonly onSave?: () => void;
  readonly marks?: readonly Mark[];
  /** Names that code completion suggests; null while loading. */
  readonly known?: Known | null;
  readonly readOnly?: boolean;
  readonly memory?: EditorMemory | undefined;
  readonly ref?: Ref<EditorHandle>;
}

/** Adapts proposals to CodeMirror's completion interface. */
const completionSource =
  (known: () => Known | null): CompletionSource =>
  ({ state, pos, explicit }) => {
    const vocabulary = known();
    if (vocabulary === null) return null;
    const found = proposalsAt(state.doc.toString(), pos, vocabulary);
    if (found === null) return null;
    // Without a typed word, the completion opens only on request, after a separator such as a colon, or in an empty
    // expression.
    const isWord = pos > found.from || /[-:[{,]\s$/.test(state.sliceDoc(Math.max(0, pos - 2), pos));
    if (!explicit && !isWord && !/\$\{\{\s*$/.test(state.sliceDoc(Math.max(0, pos - 5), pos))) return null;
    return {
      from: found.from,
      // After another dot, methods are proposed as well.
      validFor: /^[\w-]*(\.[\w-]*)?$/,
      options: found.options.map((option) => ({
        label: option.label,
        detail: option.detail,
        ...(option.info === '' ? {} : { info: option.info }),
        boost: option.required ? 2 : 0,
        apply: accepting(option),
      })),
    };
  };

/** Shows the description of the key below the pointer, or of the name or function in an expression. */
const hover = (known: () => Known | null) =>
  hoverTooltip(({ state }, pos) => {
    const vocabulary = known();
    const found = vocabulary === null ? null : hoverAt(state.doc.toString(), pos, vocabulary);
    if (found === null) return null;
    const { from, to, word, value } = found;
    const dom = document.createElement('div');
    dom.className = 'cm-word';
    const title = dom.appendChild(document.createElement('code'));
    title.textContent = word.kind === 'name' ? `${word.label}: ${word.detail}` : word.detail;
    if (word.info !== '') dom.appendChild(document.createElement('p')).textContent = word.info;
    const agent = vocabulary?.agent?.name;
    if (value !== undefined && agent !== undefined)
      dom.appendChild(document.createElement('p')).textContent =
        value === null ? `No value on ${agent}` : `On ${agent}: ${value}`;
    return { pos: from, end: to, above: true, create: () => ({ dom }) };
  });

const accepting =
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

const savedFields = { history: historyField };

/**
 * Returns the initial state. If `memory` contains a state, restores its undo history; if its text differs, the change
 * becomes another undo step.
 */
function stateOf(text: string, memory: unknown, config: EditorStateConfig): EditorState {
  if (memory == null) return EditorState.create({ ...config, doc: text });
  const before = EditorState.fromJSON(memory, config, savedFields);
  return before.update(changeTo(before, text) ?? {}).state;
}

const changeTo = (state: EditorState, text: string) =>
  state.doc.toString() === text ? null : { changes: { from: 0, to: state.doc.length, insert: text } };

function show(view: EditorView, text: string): void {
  const change = changeTo(view.state, text);
  if (change !== null) view.dispatch(change);
}

/**
 * Returns the editor's extensions.
 * @param latest returns the current callbacks, which may change between renders
 */
function extensionsOf(
  latest: () => Pick<CodeEditorProps, 'onChange' | 'onSave' | 'known'>,
  attributes: Record<string, string>,
) {
  const save = () => {
    latest().onSave?.();
    return true;
  };
  return [
    Prec.highest(keymap.of([{ key: 'Mod-s', preventDefault: true, run: save }])),
    basicSetup,
    keymap.of([indentWithTab]),
    indentUnit.of('  '),
    EditorState.tabSize.of(2),
    yaml(),
    lintGutter(),
    autocompletion({
      override: [completionSource(() => latest().known ?? null)],
      icons: false,
      maxRenderedOptions: 60,
    }),
    hover(() => latest().known ?? null),
    theme(),
    EditorView.contentAttributes.of(attributes),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest().onChange?.(update.state.doc.toString());
    }),
  ];
}

/** Shows errors as diagnostics. Clips their positions to the text. */
function showMarks(view: EditorView, marks: readonly Mark[]): void {
  const { length } = view.state.doc;
  const diagnostics = marks.map(({ from, to, severity, message }) => ({
    from: Math.min(from, length),
    to: Math.min(to, length),
    severity,
    message,
  }));
  view.dispatch(setDiagnostics(view.state, diagnostics));
}

function goTo(view: EditorView, line: number, column: number): void {
  const { from, to } = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
  const anchor = Math.min(from + column - 1, to);
  view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
  view.focus();
}

/** A YAML editor. If `value` differs from the text, it replaces the text as one undo step. */
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
  const latest = useRef<Pick<CodeEditorProps, 'onChange' | 'onSave' | 'known' | 'value'>>({ value });
  latest.current = { value, known, ...(onChange && { onChange }), ...(onSave && { onSave }) };
  const access = useRef(new Compartment());

  useEffect(() => {
    const attributes = { 'aria-label': label, 'aria-describedby': hint, tabindex: '0' };
    const extensions = [access.current.of([]), extensionsOf(() => latest.current, attributes)];
    const made = new EditorView({
      parent: host.current as HTMLDivElement,
      state: stateOf(latest.current.value, memory?.current, { extensions }),
    });
    view.current = made;
    return () => {
      if (memory !== undefined) memory.current = made.state.toJSON(savedFields);
      made.destroy();
      view.current = null;
    };
  }, [label, hint, memory]);

  useEffect(() => {
    view.current?.dispatch({
      effects: access.current.reconfigure(
        readOnly ? [EditorState.readOnly.of(true), EditorView.contentAttributes.of({ 'aria-readonly': 'true' })] : [],
      ),
    });
  }, [readOnly]);

  // Runs in a layout effect, before any more input. In a later effect, `value` could be older than the text, and would
  // overwrite input.
  useLayoutEffect(() => {
    if (view.current !== null) show(view.current, value);
  }, [value]);

  useEffect(() => {
    if (view.current !== null && marks !== undefined) showMarks(view.current, marks);
  }, [marks]);

  useImperativeHandle(
    ref,
    () => ({
      goTo: (line, column) => void (view.current && goTo(view.current, line, column)),
      focus: () => view.current?.focus(),
    }),
    [],
  );

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div ref={host} className="min-h-0 flex-1 overflow-hidden" />
      <p id={hint} className="sr-only">
        Press Tab to indent, Control+Space for completions, and Control+S to save. To leave the editor, press Escape,
        then Tab.
      </p>
    </div>
  );
}
