import type { PackageLock, PackageLocks } from '../package-locks.ts';

/**
 * Parses and edits the file in which zypper records locks: blocks of `attribute: value`, with empty lines between them.
 * zypper's own command sorts the blocks and drops comments.
 */

// zypper also reads a line that is neither a comment nor an attribute as empty.
const emptyLine = '(?:(?!#)[^:\\n]*\\n)';
const comment = '(?:#[^\\n]*(?:\\n|$))';
const attribute = '(?:(?!#)[^:\\n]*:[^\\n]*(?:\\n|$))';
const blockPattern = new RegExp(`${emptyLine}*(?:${attribute}(?:${comment}*${attribute})*|${comment})`, 'g');

/**
 * Splits the text into locks and the lines of comments between them, each with the empty lines before it, and the rest. Joined, they
 * are the text again.
 */
function split(text: string): { blocks: string[]; rest: string } {
  const blocks = text.match(blockPattern) ?? [];
  return { blocks, rest: text.slice(blocks.join('').length) };
}

const isComment = (block: string): boolean => !new RegExp(`^${emptyLine}*${attribute}`).test(block);
const followsEmptyLine = (block: string): boolean => new RegExp(`^${emptyLine}`).test(block);

/** Returns the line breaks that are needed before a block, so that an empty line separates the locks around that place. */
function missingBreaks(blocks: readonly string[], at: number): string {
  const end = blocks[at - 1]?.endsWith('\n') === false ? '\n' : '';
  const before = blocks.slice(0, at).findLastIndex((block) => !isComment(block));
  const after = blocks.findIndex((block, index) => index >= at && !isComment(block));
  const areApart = before < 0 || after < 0 || blocks.slice(before + 1, after + 1).some(followsEmptyLine);
  return areApart ? end : `${end}\n`;
}

/**
 * Returns the names that a block locks at every version, as patterns, and whether it locks exactly one package. A block
 * that selects only some versions, or other objects than packages, locks no name.
 */
function parse(block: string): { names: string[]; isPlain: boolean } {
  const names: string[] = [];
  let isUnderstood = true;
  let match = 'substring';
  for (const line of block.split('\n')) {
    const [, attribute, value = ''] = /^\s*([a-z_]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (attribute === undefined) continue;
    if (attribute === 'solvable_name') names.push(value);
    else if (attribute === 'match_type') match = value;
    else if (attribute === 'type') isUnderstood &&= value === 'package';
    else if (attribute !== 'case_sensitive' && attribute !== 'comment') isUnderstood = false;
  }
  if (!isUnderstood || names.some((name) => /\s/.test(name))) return { names: [], isPlain: false };
  if (match === 'substring') return { names: names.map((name) => `*${name}*`), isPlain: false };
  if (match !== 'glob' && match !== 'exact') return { names: [], isPlain: false };
  return { names, isPlain: names.length === 1 && !/[*?]/.test(names[0] ?? '') };
}

const locksOnly = (block: string, name: string): boolean => {
  const { names, isPlain } = parse(block);
  return isPlain && names[0] === name;
};

const named = (text: string): string[] => split(text).blocks.flatMap((block) => parse(block).names);

const of = (text: string, name: string): PackageLock[] =>
  split(text).blocks.flatMap((line, at) => (locksOnly(line, name) ? [{ at, line }] : []));

function replaced(text: string, name: string, locks: readonly PackageLock[]): string {
  const { blocks, rest } = split(text);
  const kept = blocks.filter((block) => !locksOnly(block, name));
  for (const { at, line } of locks) {
    const place = Math.min(at, kept.length);
    kept.splice(place, 0, line);
    // A line break that completes the last line stays when the lock is removed.
    for (const next of [place, place + 1]) {
      const block = kept[next];
      if (block !== undefined) kept[next] = `${missingBreaks(kept, next)}${block}`;
    }
  }
  return kept.join('') + rest;
}

/** The locks of zypper. They have no version: zypper keeps the installed one. */
export const zyppLocks: PackageLocks = {
  title: '/etc/zypp/locks',
  file: () => '/etc/zypp/locks',
  isDeletedIfEmpty: true,
  isUsed: () => true,
  names: named,
  of,
  replaced,
  entries(name, _version, former) {
    if (former.length > 0) return former;
    const line = `\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: ${name}\n`;
    return [{ at: Number.MAX_SAFE_INTEGER, line }];
  },
};
