import type { CelExpression, ControlPart, Expression, ExpressionFault, Part, TextPart } from './parts.ts';

/** A template as a tree. */
export type Block =
  | Exclude<Part, ControlPart>
  | { readonly kind: 'for'; readonly names: readonly string[]; readonly list: CelExpression; readonly body: Block[] }
  | { readonly kind: 'if'; readonly branches: readonly Branch[] }
  | { readonly kind: 'include'; readonly id: string; readonly endsLine: boolean; readonly offset: number };

interface Branch {
  /** Null for `else`. */
  readonly condition: CelExpression | null;
  readonly body: Block[];
}

/** Maximum nesting depth of loops and conditions in one template. */
const maximumDepth = 16;

interface Open {
  readonly word: 'for' | 'if';
  readonly offset: number;
  readonly body: Block[];
  readonly branches: { condition: CelExpression | null; body: Block[] }[];
}

const expressionOf = (compiled: CelExpression['compiled'], offset: number): CelExpression => ({
  kind: 'cel',
  source: '',
  compiled,
  offset,
});

/**
 * Arranges the parts of a template as a tree. A line that contains only control words and white space is removed with
 * its line break.
 */
export function blocksOf(parts: readonly Part[]): { blocks: Block[]; faults: ExpressionFault[] } {
  const blocks: Block[] = [];
  const faults: ExpressionFault[] = [];
  const open: Open[] = [];
  let current = blocks;
  const fault = (offset: number, message: string): void => {
    faults.push({ offset, message });
  };
  for (const part of withoutControlLines(parts)) {
    if (part.kind !== 'control') {
      current.push(part);
      continue;
    }
    const { control, offset } = part;
    if (control.word === 'include') {
      current.push({ kind: 'include', id: control.id, endsLine: control.endsLine === true, offset });
    } else if (control.word === 'for' || control.word === 'if') {
      if (open.length === maximumDepth) fault(offset, `loops and conditions are nested at most ${maximumDepth} deep`);
      const body: Block[] = [];
      if (control.word === 'for') {
        current.push({ kind: 'for', names: control.names, list: expressionOf(control.list, offset), body });
        open.push({ word: 'for', offset, body: current, branches: [] });
      } else {
        const branches = [{ condition: expressionOf(control.condition, offset), body }];
        current.push({ kind: 'if', branches });
        open.push({ word: 'if', offset, body: current, branches });
      }
      current = body;
    } else {
      const opened = open.at(-1);
      if (opened === undefined) {
        fault(offset, `"${control.word}" has no ${control.word === 'end' ? 'for or if' : 'if'} before it`);
      } else if (control.word === 'end') {
        open.pop();
        current = opened.body;
      } else if (opened.word === 'for') {
        fault(offset, `"${control.word}" has no matching if: write \${{ end }} of the inner block before it`);
      } else if (opened.branches.at(-1)?.condition === null) {
        fault(offset, `"${control.word}" follows else: an if can have only one else, and it must come last`);
      } else {
        const condition = control.word === 'elif' ? expressionOf(control.condition, offset) : null;
        current = [];
        opened.branches.push({ condition, body: current });
      }
    }
  }
  for (const { word, offset } of open) fault(offset, `"${word}" is not closed: write \${{ end }} after its text`);
  return { blocks, faults };
}

type Piece = TextPart | Expression | CelExpression | ControlPart;

/** Marks an `include`, so that the included text ends with the line break of the line that includes it. */
const endingLine = (part: ControlPart): ControlPart =>
  part.control.word === 'include' ? { ...part, control: { ...part.control, endsLine: true } } : part;

/** Removes the white space and the line break of lines that contain only control words. */
function withoutControlLines(parts: readonly Part[]): Piece[] {
  const result: Piece[] = [];
  let line: Piece[] = [];
  let literal = '';
  const flushLiteral = (): void => {
    if (literal !== '') result.push({ kind: 'text', text: literal });
    literal = '';
  };
  const endLine = (): void => {
    const controls = line.filter((piece) => piece.kind === 'control');
    const isControlLine =
      controls.length > 0 &&
      line.every((piece) => piece.kind === 'control' || (piece.kind === 'text' && piece.text.trim() === ''));
    const hasBreak = line.some((piece) => piece.kind === 'text' && piece.text.endsWith('\n'));
    const last = isControlLine && hasBreak ? controls.findLast(({ control }) => control.word === 'include') : undefined;
    for (const piece of isControlLine ? controls : line) {
      if (piece.kind === 'text') {
        literal += piece.text;
        continue;
      }
      flushLiteral();
      result.push(piece === last ? endingLine(piece) : piece);
    }
    line = [];
  };
  for (const part of parts) {
    if (part.kind !== 'text') {
      line.push(part);
      continue;
    }
    let start = 0;
    for (let end = part.text.indexOf('\n'); end !== -1; end = part.text.indexOf('\n', start)) {
      line.push({ kind: 'text', text: part.text.slice(start, end + 1) });
      endLine();
      start = end + 1;
    }
    if (start < part.text.length) line.push({ kind: 'text', text: part.text.slice(start) });
  }
  endLine();
  flushLiteral();
  return result;
}
