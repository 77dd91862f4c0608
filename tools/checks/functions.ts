import { parseSync, Visitor } from 'oxc-parser';
import { lineAt, lineStarts } from './lines.ts';

/** A function as it stands in a file. */
export interface MeasuredFunction {
  /** As declared or assigned; `anonymous` where it has no name. */
  name: string;
  /** From 1. */
  line: number;
  /** Lines from its first to its last, both included. */
  lines: number;
}

/**
 * Functions of more than a number of lines, outer ones first.
 * @param file name for the parser, which tells by it whether the text is TypeScript
 */
export function longFunctions(file: string, text: string, most: number): MeasuredFunction[] {
  const starts = lineStarts(text);
  const names = new Map<number, string>();
  const found: MeasuredFunction[] = [];
  const measure = (node: { start: number; end: number; id?: { name: string } | null }) => {
    const line = lineAt(starts, node.start);
    const lines = lineAt(starts, node.end) - line + 1;
    if (lines > most) found.push({ name: node.id?.name ?? names.get(node.start) ?? 'anonymous', line, lines });
  };
  new Visitor({
    VariableDeclarator: (node) => {
      if (node.init !== null && node.id.type === 'Identifier') names.set(node.init.start, node.id.name);
    },
    Property: (node) => {
      if (node.key.type === 'Identifier') names.set(node.value.start, node.key.name);
    },
    MethodDefinition: (node) => {
      if (node.key.type === 'Identifier') names.set(node.value.start, node.key.name);
    },
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(parseSync(file, text).program);
  return found;
}
