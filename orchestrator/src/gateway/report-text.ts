import { type Report, reportKeys, reportsSchema } from '@muster/protocol/wire';
import { endOfString } from '../json-strings.ts';
import { faultOf } from './link.ts';

/**
 * Reads the reports whose pieces were put together.
 * @param text JSON, up to 4 MiB
 * @returns the reports, or what is wrong with the text, in words for its sender
 */
export function readReports(text: string): Report[] | string {
  const unknown = unknownKey(text);
  if (unknown !== null) return `it has the unknown key ${JSON.stringify(unknown)}`;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'its pieces are no JSON';
  }
  const parsed = reportsSchema.safeParse(json);
  return parsed.success ? parsed.data : faultOf(parsed.error);
}

/** Characters of a key that are told. */
const mostTold = 64;

/**
 * The first key that no report has. Looked for before the text is parsed: a text full of different keys takes 0.3 s to
 * parse and as long to validate, and one with the keys of reports a tenth of that.
 */
function unknownKey(text: string): string | null {
  let start = 0;
  let end = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === quote) {
      start = at + 1;
      at = endOfString(text, at);
      end = at;
    } else if (char === colon) {
      // The string before a colon is a key.
      const key = text.slice(start, end);
      if (!reportKeys.has(key)) return key.slice(0, mostTold);
    }
  }
  return null;
}

const quote = 34;
const colon = 58;
