import { type Claimed, callsOf, entriesOf, type FencedWrite, type History, type Violation } from './history.ts';

/** Invariants for the audit log, its streams, and the fences. Each function returns the violations of one invariant. */

/** Invariant: each position has one event: the same at every replica, in every stream, and in every export. */
export function forkedChain(history: History): Violation[] {
  const hashes = new Map<number, string>();
  const ids = new Map<string, number>();
  const violations: Violation[] = [];
  const report = (message: string) => violations.push({ invariant: 'one audit chain', message });
  for (const { place, hash, id, replica, stream } of entriesOf(history, 'event')) {
    const known = hashes.get(place);
    if (known !== undefined && known !== hash) report(`${replica} has another event at ${place} in ${stream}`);
    hashes.set(place, hash);
    const former = ids.get(id);
    if (former !== undefined && former !== place) report(`the event ${id} is at ${former} and at ${place}`);
    ids.set(id, place);
  }
  for (const { ok, fault, replica } of entriesOf(history, 'chain'))
    if (!ok) report(`${replica} finds a fault in the chain: ${fault}`);
  return violations;
}

/** Invariant: the events in a stream or an export are consecutive: none is omitted, repeated, or out of order. */
export function gapsInStreams(history: History): Violation[] {
  const last = new Map<string, number>();
  return entriesOf(history, 'event').flatMap(({ stream, place, replica }) => {
    const name = stream === 'export' ? `export of ${replica}` : stream;
    const former = last.get(name);
    last.set(name, place);
    if (former === undefined || place === former + 1) return [];
    return [{ invariant: 'streams are complete', message: `${place} follows ${former} in ${name}, from ${replica}` }];
  });
}

/** Invariant: each acknowledged write is in the audit log once. */
export function unrecordedWrites(history: History): Violation[] {
  const exported = new Map<string, string>();
  for (const { stream, id, about } of entriesOf(history, 'event')) if (stream === 'export') exported.set(id, about);
  if (exported.size === 0) return [];
  const counts = new Map<string, number>();
  for (const about of exported.values())
    for (const [, value] of about.matchAll(/:"([^"]*)"/g)) counts.set(value!, (counts.get(value!) ?? 0) + 1);
  return callsOf(history).flatMap(({ invoked, outcome }) => {
    if (invoked.request.kind !== 'write' || outcome?.type !== 'succeeded') return [];
    const { key, value } = invoked.request;
    const count = counts.get(value) ?? 0;
    return count === 1
      ? []
      : [{ invariant: 'writes are audited', message: `${value} of ${key} is in the audit log ${count} times` }];
  });
}

/**
 * Uncertainty of when a claim became visible to a transaction, in milliseconds. PostgreSQL records the time of a commit
 * shortly before others see it, and the start of a transaction shortly before its snapshot.
 */
const uncertainMs = 500;

/** Invariant: no process writes in a transaction that began after another process took the claim that it requires. */
export function staleWrites(history: History): Violation[] {
  const claims = Map.groupBy(entriesOf(history, 'claimed'), ({ fence }) => fence);
  for (const of of claims.values()) of.sort((one, other) => one.committed - other.committed);
  return entriesOf(history, 'fenced_write').flatMap((write) => {
    const holders = possibleHolders(claims.get(write.fence) ?? [], write);
    if (holders.length === 0 || holders.includes(write.holder)) return [];
    const others = holders.map((holder) => holder || 'nobody').join(' or ');
    const message = `${write.holder} wrote ${write.what} at ${write.began}, when ${others} held ${write.fence}`;
    return [{ invariant: 'no write under an old claim', message }];
  });
}

/**
 * Returns who may have held the claim in the snapshot of the write's transaction; empty if that is not known.
 * @param claims in the order of their commits
 */
function possibleHolders(claims: readonly Claimed[], { began, transaction }: FencedWrite): string[] {
  const settled = claims.findLast(({ committed }) => committed < began - uncertainMs);
  if (settled === undefined) return [];
  const others = claims.filter(
    (claim) => claim.transaction === transaction || Math.abs(claim.committed - began) <= uncertainMs,
  );
  return [settled, ...others].map(({ holder }) => holder);
}
