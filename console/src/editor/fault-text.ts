import type { ErrorCode } from 'yaml';

/** Error messages for people who write modules. */

/** Replacements for messages of the YAML parser that use its internal terms. */
const syntaxTexts: Partial<Readonly<Record<ErrorCode, string>>> = {
  BAD_INDENT: 'the indentation does not match the lines above',
  BLOCK_AS_IMPLICIT_KEY: 'two keys are on one line: start a new line, or quote a value that contains ": "',
  DUPLICATE_KEY: 'this key occurs twice',
  MULTILINE_IMPLICIT_KEY: 'this line has no ":" after its key, or a quote above is not closed',
  TAB_AS_INDENT: 'indent with spaces, not with tabs',
};

export const syntaxText = (code: ErrorCode, message: string): string =>
  syntaxTexts[code] ?? (/^Implicit map keys need/.test(message) ? 'this line has no ":" after its key' : message);

/** Keys that a module may have only at its top level. */
const topLevelKeys: readonly string[] = ['resources', 'supports', 'parameters', 'templates'];

/**
 * Returns a fault's message. If a top-level key is nested in another key, the message states that its indentation is
 * wrong.
 * @param path JSON pointer
 */
export function faultText({ path, message }: { readonly path: string; readonly message: string }): string {
  const segments = path.split('/').slice(1);
  const key = segments.at(-1) ?? '';
  const isNested = segments.length > 1 && topLevelKeys.includes(segments[0] ?? '') && topLevelKeys.includes(key);
  return isNested ? `“${key}” belongs at the top level of the module: remove its indentation` : message;
}
