import type { z } from 'zod';
import type { Fault } from '../errors.ts';
import { checkModule } from './checks/check-module.ts';
import type { ModuleDocument } from './document.ts';
import { checkFiles, type ModuleFolder, templateFiles, withTemplateFiles } from './files/file-uses.ts';
import type { ModuleFiles } from './files/module-file.ts';
import { documentOf, outline } from './outline.ts';
import { moduleSchema } from './schema.ts';
import { pointer } from './source/json-pointer.ts';
import { rememberSource } from './source/places.ts';
import { decodeSource, moduleLimits, Positions } from './source/source.ts';
import { nodeAt, offsetOf, type Path, readTree, type TreeNode, treeValue } from './source/tree.ts';

export type ParsedModule =
  | { ok: true; module: ModuleDocument; warnings: Fault[] }
  | { ok: false; faults: Fault[]; warnings: Fault[] };

/**
 * Parses a module, and runs all checks that need no agent.
 *
 * @param source YAML as bytes or text
 * @param folder the files next to the module; absent if it has none
 * @returns the module, or all its errors in order of position, each with a JSON pointer, line, and column (from 1,
 *   columns in UTF-16 units); and warnings. Never throws. `moduleLimits` bounds the time for any source
 */
export function parseModule(source: string | Uint8Array, folder: ModuleFolder = noFolder): ParsedModule {
  const decoded = decodeSource(source);
  if (!decoded.ok) return { ok: false, faults: decoded.faults, warnings: [] };
  const positions = new Positions(decoded.text);
  const { root, faults, replaced } = readTree(decoded.text, positions);
  if (root === undefined) return { ok: false, faults, warnings: [] };

  const warnings: Fault[] = [];
  const value = treeValue(root);
  const faultAt = (path: Path, message: string, offset: number): Fault => ({
    path: pointer(path),
    message: message.length > maximumMessage ? `${message.slice(0, maximumMessage)}…` : message,
    ...positions.at(offset),
  });
  const locate = (path: Path, message: string, at: 'key' | 'value' = 'value'): Fault =>
    faultAt(path, message, offsetOf(root, path, at));

  const parsed = moduleSchema.safeParse(value);
  if (!parsed.success) {
    for (const { path, message, at } of flatten(parsed.error.issues, root, decoded.text)) {
      if (!replaced.has(pointer(path))) faults.push(locate(path, message, at));
    }
  }
  const fault = (path: Path, message: string, at?: 'key' | 'value') => faults.push(locate(path, message, at));
  const warning = (path: Path, message: string) => warnings.push(locate(path, message));
  const outlined = withTemplateFiles(outline(value), folder, fault);
  const fileTemplates = new Map(
    outlined.templates
      .filter(({ id }) => id !== undefined && folder.files.has(id))
      .map((template) => [pointer(template.path), template]),
  );
  checkModule(value, outlined, {
    fault,
    warning,
    faultInExpression: (path, message, offset) => {
      const file = fileTemplates.get(pointer(path.slice(0, -1)));
      if (file === undefined) faults.push(faultAt(path, message, expressionOffset(decoded.text, root, path, offset)));
      else fault(file.path, `${file.id}:${file.content.slice(0, offset).split('\n').length}: ${message}`);
    },
  });
  checkFiles(outlined, folder.files, { fault, warning });
  if (faults.length > 0) return { ok: false, faults: inOrder(faults), warnings: inOrder(warnings) };
  const module = documentOf(outlined, folder.files);
  rememberSource(module, decoded.text);
  return { ok: true, module, warnings: inOrder(warnings) };
}

const noFolder: ModuleFolder = { files: new Map(), textOf: () => null };

/** Returns a module as written, even if it has errors; undefined if the source is not YAML. */
function writtenValue(source: string | Uint8Array): unknown {
  const decoded = decodeSource(source);
  if (!decoded.ok) return undefined;
  const { root } = readTree(decoded.text, new Positions(decoded.text));
  return root === undefined ? undefined : treeValue(root);
}

/** Returns the files that a module uses as templates, whose content {@link parseModule} needs. Never throws. */
export const templateFilesOf = (source: string | Uint8Array, files: ModuleFiles): string[] =>
  files.size === 0 ? [] : templateFiles(writtenValue(source), files);

/** Returns the name that a module declares, even if the module has errors; null if it declares none. Never throws. */
export const declaredName = (source: string | Uint8Array): string | null => outline(writtenValue(source)).name || null;

/**
 * Returns the position of a value in a module.
 * @param source source of a parsed module
 * @returns line and column, both from 1; undefined if the source cannot be read
 */
export function positionIn(source: string | Uint8Array, path: Path): { line: number; column: number } | undefined {
  const decoded = decodeSource(source);
  if (!decoded.ok) return undefined;
  const positions = new Positions(decoded.text);
  const { root } = readTree(decoded.text, positions);
  return root === undefined ? undefined : positions.at(offsetOf(root, path, 'key'));
}

/** Maximum message length in characters. Messages may quote values that are as long as the module. */
const maximumMessage = 500;

interface Finding {
  path: Path;
  message: string;
  at: 'key' | 'value';
}

/**
 * Converts schema issues to errors. Reports each unknown key separately. For a choice between forms, reports only the
 * issues with the intended form.
 */
export function flatten(
  issues: readonly z.core.$ZodIssue[],
  root: TreeNode,
  source: string,
  above: Path = [],
): Finding[] {
  return issues.flatMap((issue): Finding[] => {
    const path = [...above, ...(issue.path as Path)];
    if (issue.code === 'unrecognized_keys') {
      const messages = issue.message.split('\n');
      return issue.keys.map((key, index) => ({
        path: [...path, key],
        message: messages[index] ?? '',
        at: 'key' as const,
      }));
    }
    if (issue.code === 'invalid_key') {
      return [{ path, message: issue.issues[0]?.message ?? issue.message, at: 'key' }];
    }
    const node = nodeAt(root, path);
    if (node === undefined || (node.kind === 'scalar' && node.value === null)) {
      if (typeof path.at(-1) === 'string') return [{ path, message: `"${path.at(-1)}" is required`, at: 'value' }];
    }
    if (issue.code === 'invalid_union') {
      const match = issue.errors.find((branch) => branch.some((inner) => inner.path.length > 0));
      return match === undefined ? [{ path, message: issue.message, at: 'value' }] : flatten(match, root, source, path);
    }
    if (issue.code === 'invalid_type' && issue.expected === 'string' && node?.kind === 'scalar') {
      // Quotes the value as written, because YAML reads 0644 as the number 644.
      const text = source.slice(node.start, node.end).trim();
      if (text.length <= 64) return [{ path, message: `must be text: write it in quotes, "${text}"`, at: 'value' }];
    }
    return [{ path, message: issue.message, at: 'value' }];
  });
}

/**
 * Returns the offset of an expression in the source. Counts the preceding `${{`, because quoting, folding, and
 * indentation change the text before the expression. If an escape hides one of these, the offset is approximate but
 * always within the text.
 */
function expressionOffset(source: string, root: TreeNode, path: Path, offset: number): number {
  const node = nodeAt(root, path);
  const start = offsetOf(root, path, 'value');
  if (node?.kind !== 'scalar' || typeof node.value !== 'string') return start;
  let found = source.indexOf(opening, node.start);
  let next = node.value.indexOf(opening);
  while (next !== -1 && next < offset && found !== -1) {
    found = source.indexOf(opening, found + opening.length);
    next = node.value.indexOf(opening, next + opening.length);
  }
  return next !== offset || found === -1 || found >= node.end ? start : found;
}

const opening = '${{';

/** Sorts errors by position, removes duplicates, and keeps at most `moduleLimits.faults`. */
export function inOrder(faults: readonly Fault[]): Fault[] {
  const seen = new Set<string>();
  const distinct = faults.filter(({ path, message }) => {
    const key = `${path}\0${message}`;
    return seen.has(key) ? false : seen.add(key);
  });
  distinct.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  if (distinct.length <= moduleLimits.faults) return distinct;
  const more = distinct.length - moduleLimits.faults;
  const last = distinct[moduleLimits.faults] as Fault;
  return [...distinct.slice(0, moduleLimits.faults), { ...last, message: `and ${more} more errors after this one` }];
}
