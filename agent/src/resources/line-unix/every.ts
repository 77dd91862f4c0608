import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { capturesOf, type PlacedCaptures } from '../../host/files/bounded-match.ts';
import { maxContentInMemory } from '../../host/files/inspect.ts';
import { inBytes, readable, type TextLine } from '../text-edit/lines.ts';
import { pathOf } from '../text-edit/text-file.ts';
import { bodyOf, expandedLine, hasCaptures, isTemplate, lineOf, maxLost } from './declared.ts';

/** Computes the replacement of every matching line in a file. */

/**
 * Returns the lines that change, by position, and the text that replaces each, encoded as in `TextLine`.
 * @param managed positions of the managed lines
 * @throws HostFailure if the next apply would change a result again, or if there are more lines than can be restored
 */
export function replacements(
  resource: ResolvedResource,
  managed: readonly number[],
  lines: readonly TextLine[],
): Map<number, string> {
  const texts = managed.map((index) => (lines[index] as TextLine).text);
  const results = isTemplate(resource) ? expandedTexts(resource, texts) : texts.map(() => lineOf(resource));
  const changes = new Map<number, string>();
  for (const [at, index] of managed.entries()) {
    const result = results[at] as string;
    if (result !== texts[at]) changes.set(index, result);
  }
  if (changes.size > maxLost)
    throw new HostFailure(
      `${changes.size} lines of ${pathOf(resource)} would change; at most ${maxLost} can be restored later, so nothing was changed. Use a narrower \`match\`.`,
    );
  return changes;
}

/**
 * Returns the lines with the matching parts replaced, or, with `backrefs`, `line` expanded with the groups of each
 * line's first match.
 */
function expandedTexts(resource: ResolvedResource, texts: readonly string[]): string[] {
  const field = hasCaptures(resource) ? 'backrefs' : 'replaces: every_part';
  const shown = texts.map((text) => {
    const one = readable(text);
    if (inBytes(one) !== text)
      throw new HostFailure(
        `a line of ${pathOf(resource)} matched by \`match\` is not UTF-8, so \`${field}\` cannot use it`,
      );
    return one;
  });
  const once = replacedOnce(resource, shown);
  const again = replacedOnce(resource, once);
  if (once.some((text, index) => again[index] !== text))
    throw new HostFailure(
      '`match` also matches the resulting line and would change it again on each apply; write a narrower `match`, or a `line` that stays the same',
    );
  // A carriage return at the end would change the line ending from LF to CRLF.
  if (once.some((text, index) => text.endsWith('\r') && !shown[index]?.endsWith('\r')))
    throw new HostFailure('the resulting line ends with a carriage return; write a narrower `match`');
  return once.map(inBytes);
}

function replacedOnce(resource: ResolvedResource, texts: readonly string[]): string[] {
  const { match, replaces } = bodyOf(resource);
  const isPart = replaces === 'every_part';
  let size = 0;
  const found = capturesOf(match ?? '', texts, isPart ? 'all' : 'first');
  const expand = (one: PlacedCaptures): string => {
    const result = expandedLine(resource, one);
    size += result.length;
    if (size > maxContentInMemory)
      throw new HostFailure(`the replaced lines exceed ${maxContentInMemory / 1024 / 1024} MiB; nothing was changed`);
    return result;
  };
  return texts.map((text, index) => {
    const matches = found[index] as PlacedCaptures[];
    const [first] = matches;
    if (first === undefined) return text;
    if (!isPart) return expand(first);
    let result = '';
    let end = 0;
    for (const one of matches) {
      result += text.slice(end, one.index) + expand(one);
      end = one.index + (one.groups[0] as string).length;
    }
    return result + text.slice(end);
  });
}
