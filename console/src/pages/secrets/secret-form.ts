import type { Secret } from '@muster/protocol/http';

/** The secret form's logic. Receives the random generator as a parameter, so that tests can replace it. */

export type RestrictionKind = 'any' | 'agents' | 'selector' | 'both';

export const kindOf = (restriction: Secret['restriction']): RestrictionKind => {
  if (restriction === null) return 'any';
  if (restriction.node_ids !== null && restriction.tags !== null) return 'both';
  if (restriction.node_ids !== null) return 'agents';
  return restriction.tags !== null ? 'selector' : 'any';
};

/** The restriction in the form. Keeps the input of all fields, including those that the chosen type does not use. */
export interface RestrictionDraft {
  readonly kind: RestrictionKind;
  readonly agents: readonly string[];
  readonly selector: string;
}

export const restrictionOf = ({ kind, agents, selector }: RestrictionDraft): Secret['restriction'] =>
  kind === 'any'
    ? null
    : {
        node_ids: kind === 'agents' || kind === 'both' ? [...agents] : null,
        tags: kind === 'selector' || kind === 'both' ? selector : null,
      };

/**
 * Returns a time's local date in the format of `<input type="date">`.
 * @param at RFC 3339
 */
export function dayOf(at: string | null): string {
  if (at === null) return '';
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

/**
 * Returns the end of a local day as RFC 3339, or the previous time if the day is unchanged.
 * @param before RFC 3339
 */
export function endOfDay(day: string, before: string | null): string | null {
  if (day === '') return null;
  if (dayOf(before) === day) return before;
  return new Date(`${day}T23:59:59`).toISOString();
}

export type Expiry = 'none' | 'expired' | 'days' | 'soon' | 'later';

const soonDays = 30;
const urgentDays = 3;

/** @param now Unix milliseconds */
export function expiryOf(expires_at: string | null, now: number): Expiry {
  if (expires_at === null) return 'none';
  const left = Date.parse(expires_at) - now;
  return left <= 0
    ? 'expired'
    : left < urgentDays * 86_400_000
      ? 'days'
      : left < soonDays * 86_400_000
        ? 'soon'
        : 'later';
}

const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789-_';
const length = 32;

/** Returns a random value with 188 bits of entropy. Omits letters that look alike. */
export function randomValue(random: (bytes: Uint8Array<ArrayBuffer>) => void): string {
  let value = '';
  const bytes = new Uint8Array(64);
  // Bytes above the largest multiple of the alphabet's length would favor its first letters.
  const limit = 256 - (256 % alphabet.length);
  while (value.length < length) {
    random(bytes);
    for (const byte of bytes)
      if (byte < limit && value.length < length) value += alphabet[byte % alphabet.length] as string;
  }
  return value;
}

export const nameFault = (name: string): string | null =>
  name === '' || /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name)
    ? null
    : 'Up to 64 letters, digits, “_” or “-”, starting with a letter or “_”.';

/** Reports whether the browser would send values unencrypted over the network. */
export const isPlainHttp = (protocol: string, hostname: string): boolean =>
  protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
