import { blocksOf } from './markdown.ts';

/**
 * Reads terminal sessions in documentation pages: code blocks in the language `console`. A prompt shows the user and
 * the machine that run a command; the output follows. `…` stands for varying text: part of a line or, on its own line,
 * any number of lines.
 */

export interface Step {
  /** Prompt such as `ada@control:~$`. */
  prompt: string;
  command: string;
  expected: string[];
  line: number;
}

export interface Session {
  line: number;
  steps: Step[];
  /** Answers to prompts, in order, from the comment `<!-- typed: … -->` above the block. */
  typed: string[];
  /** Files in the repository to copy before the commands run, from `<!-- copied: docs/x.yml ada@control:x.yml -->`. */
  copied: { file: string; to: string }[];
  /** Whether to repeat the commands until the output matches the page, from `<!-- repeated: … -->`. */
  repeated: boolean;
}

const promptAndCommand = /^([a-z][\w-]*@[\w-]+:[^\s$#]*[$#])(?: (.*))?$/;

/** Returns the prompt and the command on a line; null if the line has none. */
export function typedIn(line: string): { prompt: string; command: string } | null {
  const match = promptAndCommand.exec(line);
  return match ? { prompt: match[1] as string, command: match[2] ?? '' } : null;
}

export function sessionsOf(markdown: string): Session[] {
  const lines = markdown.split('\n');
  return blocksOf(markdown)
    .filter(({ language }) => language === 'console')
    .map(({ source, line }) => ({ line, steps: stepsOf(source, line), ...remarksAbove(lines, line - 2) }));
}

function stepsOf(source: string, first: number): Step[] {
  const steps: Step[] = [];
  source.split('\n').forEach((text, index) => {
    const typed = typedIn(text);
    if (typed) steps.push({ ...typed, expected: [], line: first + index + 1 });
    else if (text.startsWith('> ') && steps.at(-1)?.expected.length === 0)
      (steps.at(-1) as Step).command += `\n${text.slice(2)}`;
    else if (steps.length > 0) steps.at(-1)?.expected.push(text);
  });
  for (const { expected } of steps) while (expected.at(-1)?.trim() === '') expected.pop();
  return steps;
}

/** Reads the comments directly above a block. Readers of the rendered page do not see them. */
function remarksAbove(lines: readonly string[], from: number): Pick<Session, 'typed' | 'copied' | 'repeated'> {
  const typed: string[] = [];
  const copied: Session['copied'] = [];
  let repeated = false;
  for (let at = from; at >= 0; at--) {
    const remark = /^<!-- (typed|copied|repeated): (.*) -->$/.exec(lines[at] as string);
    if (!remark) break;
    const [, what, text] = remark as unknown as [string, string, string];
    if (what === 'repeated') repeated = true;
    else if (what === 'typed') typed.unshift(...text.split(' | '));
    else {
      const [file, to] = text.split(' ') as [string, string];
      copied.unshift({ file, to });
    }
  }
  return { typed, copied, repeated };
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * Maps the sample IDs on a page to the real IDs in a session. A sample is a 26-character ID or its last 8 characters,
 * or a node ID or its first 12 digits.
 */
export type Samples = ReadonlyMap<string, string>;

const sample =
  /\b(?:[0-9A-HJKMNP-TV-Z]{26}|(?=[A-Z]*\d)(?=\d*[A-Z])[0-9A-HJKMNP-TV-Z]{8}|[0-9a-f]{32}|[0-9a-f]{12})\b/g;
const likeIt = (id: string): string => `(${/[A-Z]/.test(id) ? '[0-9A-Z]' : '[0-9a-f]'}{${id.length}})`;

/**
 * Compares a line on the page with a line of output.
 * @returns the samples that the line adds; null if the lines differ
 */
function lineMatch(line: string, shown: string, known: Samples): Samples | null {
  const ids: string[] = [];
  // Any whitespace matches any other, and `…` matches any text.
  const words = line
    .trim()
    .split(/(…|\s+)/)
    .map((part) => {
      if (part === '…') return '.*?';
      if (/^\s+$/.test(part)) return '\\s+';
      let text = '';
      let at = 0;
      for (const { 0: id, index } of part.matchAll(sample)) {
        text += escaped(part.slice(at, index));
        at = index + id.length;
        const is = known.get(id);
        if (is !== undefined) text += escaped(is);
        else if (ids.includes(id)) text += `\\${ids.indexOf(id) + 1}`;
        else {
          ids.push(id);
          text += likeIt(id);
        }
      }
      return text + escaped(part.slice(at));
    });
  const found = new RegExp(`^\\s*${words.join('')}\\s*$`, 'u').exec(shown);
  return found ? new Map([...known, ...ids.map((id, index) => [id, found[index + 1] as string] as const)]) : null;
}

/**
 * Compares a command's output with the page.
 * @returns the difference, or all samples found
 */
export function compareOutput(
  expected: readonly string[],
  shown: readonly string[],
  known: Samples,
): { fault: string } | { fault: null; samples: Samples } {
  const expectedLines = expected.filter((line) => line.trim() !== '');
  const lines = shown.filter((line) => line.trim() !== '');
  // The furthest position that any attempt has reached.
  let farthest = { wanted: 0, line: 0 };
  const from = (at: number, line: number, samples: Samples): Samples | null => {
    if (line + at > farthest.line + farthest.wanted) farthest = { wanted: at, line };
    const next = expectedLines[at];
    if (next === undefined) return line === lines.length ? samples : null;
    if (next.trim() === '…') {
      for (let to = line; to <= lines.length; to++) {
        const found = from(at + 1, to, samples);
        if (found) return found;
      }
      return null;
    }
    const there = lines[line];
    const found = there === undefined ? null : lineMatch(next, there, samples);
    return found && from(at + 1, line + 1, found);
  };
  const samples = from(0, 0, known);
  if (samples) return { fault: null, samples };
  const missing = expectedLines[farthest.wanted];
  const stopped = lines[farthest.line];
  if (missing === undefined) return { fault: `the output has more lines than the page: ${JSON.stringify(stopped)}` };
  const instead = stopped === undefined ? 'nothing more' : JSON.stringify(stopped);
  return { fault: `expected ${JSON.stringify(missing)}, but the output has ${instead}` };
}

/**
 * Returns the command to run for a command on a page. Replaces samples with the real IDs, and a line that contains `…`
 * with the latest matching line of output, which a reader would copy.
 * @param shown all output so far, oldest line first
 * @throws Error if no line of output matches
 */
export const filledIn = (command: string, shown: readonly string[], known: Samples): string =>
  command
    .split('\n')
    .map((line) => {
      const text = line.replaceAll(sample, (id) => known.get(id) ?? id);
      if (!text.includes('…')) return text;
      const copied = shown.findLast((each) => lineMatch(text, each, known));
      if (copied === undefined) throw new Error(`no line of the output matches ${text}`);
      return copied.trim();
    })
    .join('\n');
