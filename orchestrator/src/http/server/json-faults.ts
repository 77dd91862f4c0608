import type { Fault } from '@muster/protocol';
import { quoted } from '@muster/protocol/nearest';
import { createScanner, type SyntaxKind } from 'jsonc-parser';
import { pointer } from './pointer.ts';

/** Maximum number of reported errors, because a hostile body could contain a hundred thousand. */
const maxFaults = 100;

interface Frame {
  /** Keys read so far; null in an array. */
  keys: Set<string> | null;
  /** Current key or index. */
  segment: string | number;
}

// Token constants of jsonc-parser, which exports them only as a const enum.
const token = {
  openBrace: 1,
  closeBrace: 2,
  openBracket: 3,
  closeBracket: 4,
  comma: 5,
  colon: 6,
  string: 10,
  number: 11,
  lineComment: 12,
  blockComment: 13,
  end: 17,
} as const satisfies Record<string, SyntaxKind>;
const literals: readonly number[] = [7, 8, 9, token.string, token.number];

const scanFaults: Readonly<Record<number, string>> = {
  1: 'the comment is not closed',
  2: 'the string is not closed on its line',
  3: 'the number is incomplete',
  4: 'the \\u escape needs four hexadecimal digits',
  5: 'JSON has no such escape',
  6: 'the character must be escaped',
};

/**
 * Locates and explains the errors in invalid JSON. Does not use recursion, so that nesting cannot exhaust the stack.
 * @returns duplicate and forbidden keys before the first syntax error, followed by that error; empty if there are none
 */
export function findFaults(text: string, maxDepth: number): Fault[] {
  const faults: Fault[] = [];
  const scanner = createScanner(text, false);
  const stack: Frame[] = [];
  const fault = (message: string) => {
    faults.push({
      path: pointer(stack.map((frame) => frame.segment)),
      message,
      line: scanner.getTokenStartLine() + 1,
      column: scanner.getTokenStartCharacter() + 1,
    });
    return faults;
  };
  // The expected token. After an opening bracket (`first…`), a closing bracket is also valid.
  let state: 'value' | 'firstValue' | 'key' | 'firstKey' | 'colon' | 'separator' = 'value';

  while (faults.length < maxFaults) {
    const kind = scanner.scan() as number;
    if (kind === 14 || kind === 15) continue;
    const frame = stack.at(-1);
    if (kind === token.end) {
      if (state === 'separator' && stack.length === 0) return faults;
      return fault(text.trim() === '' ? 'expected a JSON value' : 'the text ends too early');
    }
    if (kind === token.lineComment || kind === token.blockComment) return fault('JSON has no comments');
    const scanFault = scanFaults[scanner.getTokenError()];
    if (scanFault !== undefined) return fault(scanFault);

    if (state === 'separator') {
      if (!frame) return fault('nothing may follow the value');
      if (kind === (frame.keys ? token.closeBrace : token.closeBracket)) stack.pop();
      else if (kind !== token.comma) return fault(`a comma or ${frame.keys ? '}' : ']'} is missing`);
      else if (frame.keys) state = 'key';
      else {
        frame.segment = Number(frame.segment) + 1;
        state = 'value';
      }
    } else if (state === 'colon') {
      if (kind !== token.colon) return fault('a colon is missing after the key');
      state = 'value';
    } else if (state === 'key' || state === 'firstKey') {
      if (state === 'firstKey' && kind === token.closeBrace) {
        stack.pop();
        state = 'separator';
        continue;
      }
      if (kind !== token.string || !frame?.keys) return fault('expected a key in double quotes');
      const key = scanner.getTokenValue();
      frame.segment = key;
      if (frame.keys.has(key)) fault(`the key ${quoted(key)} is repeated`);
      if (key === '__proto__' || (key === 'prototype' && stack.at(-2)?.segment === 'constructor'))
        fault(`the key ${quoted(key)} is not allowed`);
      const keyFault = flawOf(key);
      if (keyFault !== null) fault(keyFault);
      frame.keys.add(key);
      state = 'colon';
    } else {
      if (state === 'firstValue' && kind === token.closeBracket) {
        stack.pop();
        state = 'separator';
      } else if (kind === token.openBrace || kind === token.openBracket) {
        if (stack.length === maxDepth) return fault(`nests deeper than ${maxDepth} levels`);
        const object = kind === token.openBrace;
        stack.push(object ? { keys: new Set(), segment: '' } : { keys: null, segment: 0 });
        state = object ? 'firstKey' : 'firstValue';
      } else {
        if (!literals.includes(kind)) return fault('expected a JSON value');
        const textFault = kind === token.string ? flawOf(scanner.getTokenValue()) : null;
        if (textFault !== null) fault(textFault);
        state = 'separator';
      }
    }
  }
  return faults;
}

/** Returns the reason why the text cannot be stored; null if it can. */
function flawOf(text: string): string | null {
  if (!text.isWellFormed()) return 'an unpaired surrogate is not allowed';
  return text.includes('\u0000') ? 'the character U+0000 is not allowed' : null;
}
