import type { Fault } from '@muster/protocol';
import { quoted } from '@muster/protocol/nearest';
import { pointer } from './pointer.ts';

export interface ParsedQuery {
  readonly values: Readonly<Record<string, string>>;
  readonly faults: readonly Fault[];
}

export const nothing: ParsedQuery = {
  values: Object.freeze(Object.create(null) as Record<string, string>),
  faults: [],
};
const maxFaults = 100;

/**
 * Parses the query of a URL as form data, where `+` is a space. Returns errors instead of throwing, because they must
 * be reported after the session check.
 */
export function parseQuery(text: string): ParsedQuery {
  if (text === '') return nothing;
  const values = Object.create(null) as Record<string, string>;
  const faults: Fault[] = [];
  for (const part of text.split('&')) {
    if (part === '' || faults.length >= maxFaults) continue;
    const equals = part.indexOf('=');
    const name = decode(equals === -1 ? part : part.slice(0, equals));
    const value = decode(equals === -1 ? '' : part.slice(equals + 1));
    if (name === null || value === null)
      faults.push({ path: pointer([name ?? part]), message: 'each percent sign must begin an escape of UTF-8 text' });
    else if (name in values)
      faults.push({ path: pointer([name]), message: `the parameter ${quoted(name)} is repeated` });
    else values[name] = value;
  }
  return { values, faults };
}

function decode(text: string): string | null {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return null;
  }
}
