import { z } from 'zod';
import { isMapping } from '../../mapping.ts';
import { quoted, suggestion } from '../nearest.ts';

/** Keys with this prefix are ignored at every level, for notes and YAML anchors. */
export const isExtensionKey = (key: string): boolean => key.startsWith('x-');

/**
 * Returns the schema for an object with known keys. Drops `x-` keys, treats null as absent, and suggests the closest
 * known name for an unknown key.
 * @param noun description of the object in messages
 * @param shape schemas of all fields; optional fields are `.optional()`
 * @param meta properties of the JSON Schema
 * @param keyNoun noun for a key in messages
 */
export function closed<S extends z.ZodRawShape>(
  noun: string,
  shape: S,
  meta: Record<string, unknown> = {},
  keyNoun = 'field',
) {
  const known = Object.keys(shape);
  const object = z
    .strictObject(shape, {
      error: (issue) =>
        issue.code === 'unrecognized_keys'
          ? // The message has one line for each key, in order. The code that converts issues to errors splits it.
            issue.keys.map((key) => unknownKey(keyNoun, key, known)).join('\n')
          : `must be ${noun}`,
    })
    .meta(meta);
  return z.preprocess((value) => {
    if (!isMapping(value)) return value;
    const known: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      if (isExtensionKey(key)) continue;
      if (value[key] === null && Object.hasOwn(shape, key)) continue;
      known[key] = value[key];
    }
    return known;
  }, object);
}

/** Keys of other tools, and keys that belong elsewhere in this language, with the correct alternative. */
const instead: ReadonlyMap<string, string> = new Map([
  ['with_items', 'for_each'],
  ['with_dict', 'for_each'],
  ['loop', 'for_each'],
  ['state', 'ensure'],
  ['tasks', 'resources'],
  ['vars', 'parameters'],
  ['variables', 'parameters'],
  ['module', 'name'],
  ['dest', 'path'],
  ['src', 'source'],
  ['text', 'content'],
  ['perms', 'mode'],
  ['require', 'depends_on'],
  ['requires', 'depends_on'],
  ['subscribe', 'reload_on'],
  ['onlyif', 'only_if'],
  ['unless', 'only_if'],
]);

/** Keys of other tools without a counterpart of one name. */
const advice: ReadonlyMap<string, string> = new Map([
  ['register', 'to act after a change, write notify; to check the machine first, write only_if'],
  ['handlers', 'give the resource an id, and name it under notify of other resources'],
  ['become', 'the agent runs as root: remove it'],
  ['ignore_errors', 'remove it: only resources that depend on a failed one are skipped'],
]);

/** Fields of `download` in other tools, which only `archive` can replace. */
const unpacks: ReadonlySet<string> = new Set(['unpack', 'extract', 'archive', 'unzip', 'untar']);

export function unknownKey(noun: string, key: string, known: readonly string[]): string {
  const other = instead.get(key);
  if (other !== undefined && known.includes(other)) return `unknown ${noun} ${quoted(key)}: write ${other}`;
  const advised = noun === 'field' && !known.includes('content') ? advice.get(key) : undefined;
  if (advised !== undefined) return `unknown ${noun} ${quoted(key)}: ${advised}`;
  const isKind = noun === 'field' && known.includes('resource') && /^[a-z]+-[a-z-]+$/.test(key);
  if (isKind) return `unknown ${noun} ${quoted(key)}: write a kind under resource, as in resource: { ${key}: { … } }`;
  if (unpacks.has(key) && known.includes('sha256_url'))
    return `unknown ${noun} ${quoted(key)}: to unpack the file, write the kind archive instead, which also downloads it`;
  return `unknown ${noun} ${quoted(key)}${suggestion(key, known)}`;
}
