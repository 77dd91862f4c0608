import { type Report, reportKeys, reportsSchema } from '@muster/protocol/wire';
import { endOfString } from '../json-strings.ts';
import { faultOf } from './link.ts';

/**
 * Parses reassembled reports.
 * @param text JSON, up to 4 MiB
 * @returns the reports, or a description of the first error
 */
export function readReports(text: string): Report[] | string {
  const unknown = unknownKey(text);
  if (unknown !== null) return `unknown key ${JSON.stringify(unknown)}`;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'the joined pieces are not valid JSON';
  }
  const parsed = reportsSchema.safeParse(json);
  return parsed.success ? parsed.data : faultOf(parsed.error);
}

const maxKeyLength = 64;

/**
 * Returns the first unknown key in reports, or null. Call this before parsing the text, because many different keys
 * make parsing and validation ten times as slow (0.6 s).
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
      // The last string before a colon is a key.
      const key = text.slice(start, end);
      if (!reportKeys.has(key)) return key.slice(0, maxKeyLength);
    }
  }
  return null;
}

const quote = 34;
const colon = 58;
