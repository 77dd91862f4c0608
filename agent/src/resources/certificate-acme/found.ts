import type { X509Certificate } from 'node:crypto';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  chainText,
  checkChain,
  covers,
  expiresSoon,
  lifetimeOf,
  namesOf,
  readChain,
  readPrivateKey,
  shownTime,
} from '../certificate/chain.ts';
import { type KeyType, typeOfKey } from './csr.ts';

/** Decides whether a certificate can be used, whether it is on the machine or was just issued. */

export const defaultKeyType: KeyType = 'ecdsa-p256';
const defaultRenewDays = 30;

export interface Found {
  /** The whole chain in PEM; null if there is no usable chain. */
  chain: string | null;
  /** Why the existing certificate must be replaced; null if there is no fault. */
  fault: string | null;
  keyType: string | null;
  domains: string[];
  /** Validity period of the first certificate, in milliseconds since the Unix epoch. Authorities renew the others. */
  from: number;
  until: number;
}

/** Reads a chain and its private key in PEM. */
export function readFound(fullchain: string, privateKey: string): Found {
  try {
    const chain = readChain(fullchain);
    const key = readPrivateKey(privateKey);
    checkChain(chain, key, []);
    const [leaf] = chain as [X509Certificate];
    const { from, until } = lifetimeOf([leaf]);
    const fault = leaf.checkIssued(leaf) ? 'it is signed by its own key' : null;
    return { chain: chainText(chain), fault, keyType: typeOfKey(key), domains: namesOf(leaf), from, until };
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { chain: null, fault: error.message, keyType: null, domains: [], from: 0, until: 0 };
  }
}

const shown = (names: readonly string[]): string => names.join(', ').slice(0, 1000);

/** Returns the changes that require a new certificate; null if the existing one can be kept. */
export function requestChanges(
  { domains, key_type, renew_before }: ResolvedResource<'certificate-acme'>['body'],
  found: Found | null,
  now: number,
): FieldChange[] | null {
  const wanted = domains.map((name) => name.toLowerCase()).sort();
  if (found === null)
    return [
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'domains', from: null, to: shown(wanted) },
    ];
  if (found.chain === null || found.fault !== null)
    return [{ field: 'certificate', from: (found.fault ?? 'unusable').slice(0, 300), to: 'a new certificate' }];
  const changes: FieldChange[] = [];
  const isCovered = (name: string): boolean => covers(found.domains, name);
  const missing = wanted.filter((name) => !isCovered(name));
  if (missing.length > 0)
    // The missing names come first, so that a long list is not truncated before them.
    changes.push({
      ...{ field: 'domains', from: shown([...found.domains].sort()) },
      to: shown([...missing, ...wanted.filter(isCovered)]),
    });
  const keyType = key_type ?? defaultKeyType;
  if (found.keyType !== keyType) changes.push({ field: 'key_type', from: found.keyType, to: keyType });
  const days = renew_before ?? defaultRenewDays;
  if (now >= found.until || expiresSoon(found, days, now))
    changes.push({ field: 'not_after', from: shownTime(found.until), to: `more than ${days} days from now` });
  return changes.length === 0 ? null : changes;
}

/**
 * Returns why a certificate that the authority issued cannot be used; null if it can.
 * @param isFresh whether it was ordered recently; such a certificate is used until it expires, because a new
 *   certificate would not last longer
 */
export function unusable(
  body: ResolvedResource<'certificate-acme'>['body'],
  found: Found,
  now: number,
  isFresh: boolean,
): string | null {
  const [change] = requestChanges(isFresh ? { ...body, renew_before: 0 } : body, found, now) ?? [];
  if (change?.field === 'certificate') return String(change.from);
  if (change !== undefined) return `${change.field} is ${change.from}, not ${change.to}`;
  return now < found.from ? `it is valid only from ${shownTime(found.from)}: check the clock of this machine` : null;
}
