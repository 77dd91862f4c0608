import { isName } from '@muster/protocol';

/**
 * Returns a valid name for an agent or operator that is as similar as possible to the given text.
 * @param text any hostname or login name
 * @param fallback a valid name, used if no valid character remains
 */
export function nameFrom(text: string, fallback: string): string {
  const first = text.normalize('NFC').split('.')[0] as string;
  const cleaned = first
    .replace(/[^\p{L}\p{Nd}_-]+/gu, '-')
    .replace(/^[^\p{L}]+/u, '')
    .replace(/-+$/, '');
  const name = [...cleaned].slice(0, 64).join('');
  if (isName(name)) return name;
  // Adds a prefix if the name is too long in UTF-16 units or has the form of an ID.
  const prefixed = `${fallback}-${[...cleaned].slice(0, 30).join('')}`.slice(0, 64);
  return cleaned !== '' && isName(prefixed) ? prefixed : fallback;
}

export interface KnownProfile {
  name: string;
  url: string;
  /** Fingerprint of the trusted certificate, with or without colons; null if there is none. */
  fingerprint: string | null;
  current: boolean;
}

/**
 * Returns the profile name for the orchestrator that `npm start` runs: `local`, unless that profile belongs to another
 * orchestrator. Two orchestrators count as the same if their address or their certificate is equal.
 * @param fingerprint with or without colons
 */
export function profileFor(profiles: readonly KnownProfile[], url: string, fingerprint: string | null): string {
  const normalized = (text: string | null) => text?.replaceAll(':', '').toLowerCase() ?? null;
  const expected = normalized(fingerprint);
  for (let number = 1; ; number++) {
    const name = number === 1 ? 'local' : `local-${number}`;
    const taken = profiles.find((profile) => profile.name === name);
    if (!taken || taken.url === url || (expected !== null && normalized(taken.fingerprint) === expected)) return name;
  }
}
