import { parseSync, Visitor } from 'oxc-parser';
import { lineAt, lineStarts, type NamedLine } from './lines.ts';

/** Browser functions and classes that send network requests. */
const network = ['fetch', 'EventSource', 'WebSocket', 'XMLHttpRequest', 'WebTransport', 'sendBeacon'];
/** Properties and functions that turn text into markup or code. */
const html = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'dangerouslySetInnerHTML', 'srcdoc', 'srcDoc', 'eval'];

/** Matches each text that may contain one of these names, also with an escape sequence in the name. Parsing is slow. */
const mayCall = new RegExp([...network, ...html, '\\\\[ux]'].join('|'));

export const isNetwork = (name: string): boolean => network.includes(name);

/**
 * Finds every use of a browser function or property that only some layers in the console may use, such as `fetch` and
 * `innerHTML`. Ignores these names in types, and functions with these names that the file itself declares.
 */
export function browserCallsOf(file: string, text: string): NamedLine[] {
  if (!mayCall.test(text)) return [];
  const { program } = parseSync(file, text);
  const found: { name: string; start: number }[] = [];
  const note = (name: string, start: number) => found.push({ name, start });
  const globals = ['window', 'globalThis', 'self', 'navigator'];
  /** Records a called function or constructed class if the browser provides it. */
  const called = (callee: { type: string; start: number }): void => {
    const node = callee as { type: string; start: number; name?: string; object?: unknown; property?: unknown };
    if (node.type === 'Identifier' && [...network, 'eval'].includes(node.name ?? '')) note(node.name ?? '', node.start);
    const object = node.object as { type: string; name?: string } | undefined;
    const property = node.property as { type: string; name?: string } | undefined;
    if (node.type !== 'MemberExpression' || property?.type !== 'Identifier') return;
    if (object?.type === 'Identifier' && globals.includes(object.name ?? '') && network.includes(property.name ?? ''))
      note(property.name ?? '', node.start);
    if (property.name === 'insertAdjacentHTML') note(property.name, node.start);
  };
  new Visitor({
    CallExpression: (node) => called(node.callee),
    NewExpression: (node) => called(node.callee),
    AssignmentExpression: ({ left }) => {
      if (left.type === 'MemberExpression' && left.property.type === 'Identifier' && html.includes(left.property.name))
        note(left.property.name, left.start);
    },
    JSXAttribute: ({ name, start }) => {
      if (name.type === 'JSXIdentifier' && html.includes(name.name)) note(name.name, start);
    },
  }).visit(program);
  const starts = lineStarts(text);
  return found.sort((a, b) => a.start - b.start).map(({ name, start }) => ({ name, line: lineAt(starts, start) }));
}
