import { parseSync, Visitor } from 'oxc-parser';
import { lineAt, lineStarts, type NamedLine } from './lines.ts';

/** The declared or assigned name; `anonymous` if there is none. */
export interface MeasuredFunction extends NamedLine {
  /** Number of lines, including the first and the last. */
  lines: number;
}

/**
 * Finds functions of more than `maxLines` lines, outer functions first.
 * @param file file name; its extension determines whether the text is TypeScript or JSX
 */
export function functionsOver(maxLines: number, file: string, text: string): MeasuredFunction[] {
  const starts = lineStarts(text);
  if (starts.length <= maxLines) return [];
  const names = new Map<number, string>();
  const found: MeasuredFunction[] = [];
  const measure = (node: { start: number; end: number; id?: { name: string } | null }) => {
    const line = lineAt(starts, node.start);
    const lines = lineAt(starts, node.end) - line + 1;
    if (lines > maxLines) found.push({ name: node.id?.name ?? names.get(node.start) ?? 'anonymous', line, lines });
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
