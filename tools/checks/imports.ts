import { parseSync, Visitor } from 'oxc-parser';
import { lineAt, lineStarts } from './lines.ts';

/** A reference to another module: an import, a re-export, a type import, or the URL of a worker. */
export interface Import {
  /** The specifier in the source, such as `./x.ts`, `node:fs`, or `@muster/protocol/wire`. */
  specifier: string;
  /** Line number, from 1. */
  line: number;
}

/** Matches each text with references that are not import or export statements. Reading the syntax tree is slow. */
const mayCall = /\bimport\s*(?:\(|\/[*/])|\bURL\b|\brequire\b|\\u/;

/**
 * Finds every module that a source file references. Includes type imports, because types must not be imported from a
 * higher layer either. Includes `new URL('./x.ts', import.meta.url)`, because workers and child processes are started
 * from such URLs.
 * @param file file name; its extension determines whether the text is TypeScript
 * @throws Error if the text does not parse
 */
export function importsOf(file: string, text: string): Import[] {
  const parsed = parseSync(file, text);
  const fault = parsed.errors[0];
  if (fault) throw new Error(`${file} does not parse: ${fault.message}`);

  const found: { specifier: string; start: number }[] = [];
  for (const { moduleRequest } of parsed.module.staticImports)
    found.push({ specifier: moduleRequest.value, start: moduleRequest.start });
  for (const { entries } of parsed.module.staticExports)
    for (const { moduleRequest } of entries)
      if (moduleRequest) found.push({ specifier: moduleRequest.value, start: moduleRequest.start });

  const literal = (node: { type: string; start: number; value?: unknown } | null | undefined) => {
    if (node?.type === 'Literal' && typeof node.value === 'string')
      found.push({ specifier: node.value, start: node.start });
  };
  const visitor = new Visitor({
    ImportExpression: (node) => literal(node.source),
    TSImportType: (node) => literal(node.source),
    NewExpression: (node) => {
      const [target, base] = node.arguments;
      const isUrl = node.callee.type === 'Identifier' && node.callee.name === 'URL';
      if (isUrl && base?.type === 'MemberExpression' && base.object.type === 'MetaProperty') literal(target);
    },
    CallExpression: (node) => {
      if (node.callee.type === 'Identifier' && node.callee.name === 'require') literal(node.arguments[0]);
    },
  });
  if (mayCall.test(text)) visitor.visit(parsed.program);

  const starts = lineStarts(text);
  const seen = new Set<string>();
  const imports: Import[] = [];
  for (const { specifier, start } of found.sort((a, b) => a.start - b.start)) {
    const line = lineAt(starts, start);
    if (seen.has(`${line} ${specifier}`)) continue;
    seen.add(`${line} ${specifier}`);
    imports.push({ specifier, line });
  }
  return imports;
}
