import type { Report } from '@muster/protocol/wire';

/**
 * Removes secret values from agent reports. Agents already hide these values. Scrubbing also covers faulty agents, and
 * programs that print a value.
 */

/** Replaces a secret value. */
const hidden = '(sensitive)';
/** Minimum length of a value. Shorter values are likely to occur in text by chance. */
const minValueLength = 4;
/** Minimum length of a single line in a multi-line value. Shorter lines may be `}` or `-----`. */
const minLineLength = 8;
/** Minimum length of an encoded part of a value, in base64 or hexadecimal characters. */
const minEncodedLength = 8;

/** Returns the literal and escaped forms in which programs write a value. */
function formsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const url = encodeURIComponent(value.toWellFormed());
  const encoding = (more: RegExp) => url.replace(more, (character) => `%${hexOf(character).toUpperCase()}`);
  // The encodings of JavaScript, RFC 3986, and HTML forms. HTML forms encode a space as `+`. Some programs leave slashes
  // unencoded.
  const urls = [url, encoding(/[!'()*]/g), encoding(/[!'()~]/g)].flatMap((form) => [
    form,
    form.replaceAll('%20', '+'),
    form.replaceAll('%2F', '/'),
  ]);
  return [
    value,
    value.trim(),
    json,
    json.replaceAll('/', '\\/'),
    json.replace(/[^ -~]/g, escaped),
    json.replace(/[<>&\u2028\u2029]/g, escaped),
    ...urls,
    ...urls.map((form) => form.replace(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase())),
  ];
}

const hexOf = (text: string): string => Buffer.from(text).toString('hex');
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/**
 * Returns the encoded forms of a value, which programs wrap into lines. In base64, the preceding bytes shift a value
 * by 0, 1, or 2 bytes, so its first and last characters also encode neighboring bytes. Those characters are not part
 * of the form, but are hidden with it.
 */
function wrappedFormsOf(value: string): Form[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  const base64 = [0, 1, 2].flatMap((before) => {
    const length = before + bytes.length;
    const shared = { before: before === 0 ? 0 : 1, after: length % 3 === 0 ? 0 : 1 };
    const text = Buffer.concat([Buffer.alloc(before), bytes]);
    return (['base64', 'base64url'] as const).map((alphabet) => ({
      text: text.toString(alphabet).slice(Math.ceil((before * 4) / 3), Math.floor((length * 4) / 3)),
      ...shared,
    }));
  });
  return [...base64, ...[hex, hex.toUpperCase()].map((form) => ({ text: form, before: 0, after: 0 }))];
}

/** Text to find, and the number of adjacent characters to hide on each side. */
interface Form {
  readonly text: string;
  readonly before: number;
  readonly after: number;
}

/** Start (inclusive) and end (exclusive) of a range in the text. */
type Range = [start: number, end: number];

/**
 * Hides secret values in text.
 * @param isPart whether the text consists of whole lines from a longer text; values that are cut off at its beginning
 * or end are also hidden
 */
export type Scrub = (text: string, isPart?: boolean) => string;

/**
 * Returns a function that replaces every value in text. It also finds values that are quoted as JSON or in a URL, or
 * encoded in base64 or hexadecimal, alone or with surrounding text.
 * @param values the values to hide
 */
export function createScrub(values: Iterable<string>): Scrub {
  const exactForms = new Set<string>();
  const folded = new Map<string, Form>();
  for (const value of values) {
    for (const form of formsOf(value)) if (form.length >= minValueLength) exactForms.add(form);
    for (const form of wrappedFormsOf(value)) if (value.length >= minValueLength) folded.set(form.text, form);
    // A diff shows each line of a value separately.
    const lines = value.split(/\r?\n/);
    if (lines.length > 1)
      for (const line of lines) if (line.trim().length >= minLineLength) exactForms.add(line.trim());
  }
  return (text, isPart = false) => {
    const found: Range[] = [];
    for (const form of exactForms) {
      for (const start of offsetsOf(form, text)) found.push([start, start + form.length]);
      // A part consists of whole lines, so a form without line breaks is never cut off.
      if (isPart && form.includes('\n')) found.push(...cutOff(form, text, minValueLength));
    }
    const { joined, offsets } = withoutSpace(text);
    for (const form of folded.values()) {
      const ranges = [...offsetsOf(form.text, joined)].map((start): Range => [start, start + form.text.length]);
      if (isPart) ranges.push(...cutOff(form.text, joined, minEncodedLength));
      for (const [start, end] of ranges) {
        const first = Math.max(0, start - form.before);
        const last = Math.min(joined.length, end + form.after) - 1;
        found.push([offsets?.[first] ?? first, (offsets?.[last] ?? last) + 1]);
      }
    }
    return found.length === 0 ? text : without(text, found);
  };
}

function* offsetsOf(form: string, text: string): Generator<number> {
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) yield at;
}

/** Returns the ranges where a form is cut off at the beginning or end of the text. */
function cutOff(form: string, text: string, minLength: number): Range[] {
  if (text.length >= minLength && text.length < form.length && form.includes(text)) return [[0, text.length]];
  const lengths: number[] = [];
  for (let length = Math.min(form.length - 1, text.length); length >= minLength; length--) lengths.push(length);
  const cutStart = lengths.find((length) => text.endsWith(form.slice(0, length)));
  const rest = lengths.find((length) => text.startsWith(form.slice(-length)));
  return [
    ...(cutStart === undefined ? [] : [[text.length - cutStart, text.length] satisfies Range]),
    ...(rest === undefined ? [] : [[0, rest] satisfies Range]),
  ];
}

/**
 * Returns the text without white space, and the original position of each character; null instead of the positions if
 * all are unchanged.
 */
function withoutSpace(text: string): { joined: string; offsets: Uint32Array | null } {
  if (!/\s/.test(text)) return { joined: text, offsets: null };
  const offsets = new Uint32Array(text.length);
  let length = 0;
  const parts: string[] = [];
  for (const { 0: part, index } of text.matchAll(/\S+/g)) {
    parts.push(part);
    for (let i = 0; i < part.length; i++) offsets[length++] = index + i;
  }
  return { joined: parts.join(''), offsets };
}

/** Replaces ranges in the text. Overlapping ranges are replaced once. */
function without(text: string, ranges: Range[]): string {
  ranges.sort(([a], [b]) => a - b);
  let left = '';
  let end = 0;
  for (const [from, to] of ranges) {
    if (from >= end) left += text.slice(end, from) + hidden;
    end = Math.max(end, to);
  }
  return left + text.slice(end);
}

/** Returns a report with its free text scrubbed. Names and identities come from modules and contain no secrets. */
export function scrubReport(report: Report, scrub: (text: string) => string): Report {
  const orNull = (text: string | null) => (text === null ? null : scrub(text));
  switch (report.type) {
    case 'accepted':
      return report;
    case 'output':
      return { ...report, stdout: scrub(report.stdout), stderr: scrub(report.stderr) };
    case 'finished':
      return { ...report, error: orNull(report.error) };
    case 'results':
      return {
        ...report,
        results: report.results.map((result) => ({
          ...result,
          message: orNull(result.message),
          diff: orNull(result.diff),
          changes: result.changes.map((change) => ({ ...change, from: orNull(change.from), to: orNull(change.to) })),
        })),
      };
  }
}
