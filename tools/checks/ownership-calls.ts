import { parseSync, Visitor } from 'oxc-parser';
import { lineAt, lineStarts, type NamedLine } from './lines.ts';

const calls = /^[fl]?ch(?:mod|own)(?:Sync)?$/;
/** Matches each text that may contain such a call, also with an escape sequence in the name. Parsing is slow. */
const mayCall = /ch(?:mod|own)|\\[ux]/;

/**
 * Finds every use of a function that sets an owner or permissions in a source file: an import, a property, or a name in
 * brackets.
 */
export function ownershipCallsOf(file: string, text: string): NamedLine[] {
  if (!mayCall.test(text)) return [];
  const { program } = parseSync(file, text);
  const starts = lineStarts(text);
  const found = new Map<number, string>();
  const note = (name: unknown, start: number): void => {
    if (typeof name === 'string' && calls.test(name)) found.set(start, name);
  };
  new Visitor({
    Identifier: ({ name, start }) => note(name, start),
    Literal: ({ value, start }) => note(value, start),
    TemplateElement: ({ value, start }) => note(value.cooked, start),
  }).visit(program);
  return [...found].sort(([a], [b]) => a - b).map(([start, name]) => ({ name, line: lineAt(starts, start) }));
}
