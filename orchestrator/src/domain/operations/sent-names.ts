import { hash } from 'node:crypto';
import { nameLengths, type ResourceResult, toldName } from '@muster/protocol';
import { limits } from '@muster/protocol/wire';
import type { SentOperation } from '../../store/queries/operations.ts';
import type { Payloads } from './payloads.ts';

/**
 * Which resources an operation was sent with, small enough to keep for every open operation: what an agent reports is
 * compared with it, and nothing that was not sent is kept under a name that the agent made up.
 */

export type Named = Pick<ResourceResult, 'module' | 'type' | 'identity'>;

/** 48 bits of a digest: a collision gains an agent nothing but a name that it could have been sent. */
export const printOf = (text: string): number => hash('sha256', text, 'buffer').readUIntBE(0, 6);

const resourcePrint = ({ module, type, identity }: Named): number =>
  printOf(
    [
      toldName(module, nameLengths.module),
      toldName(type, nameLengths.type),
      toldName(identity, nameLengths.identity),
    ].join('\0'),
  );

/** The resource of an output, as agents name it. */
export const outputName = ({ module, identity }: Pick<Named, 'module' | 'identity'>): string =>
  toldName(`${module}/${identity}`, limits.outputResourceLength);

export class SentNames {
  readonly #resources: readonly number[];
  readonly #known: ReadonlySet<number>;
  readonly #outputs: ReadonlySet<number>;

  constructor(resources: readonly Named[]) {
    this.#resources = resources.map(resourcePrint);
    this.#known = new Set(this.#resources);
    this.#outputs = new Set(resources.map((resource) => printOf(outputName(resource))));
  }

  get count(): number {
    return this.#resources.length;
  }

  /** Whether it is the resource that was sent at this position. */
  isAt(position: number, resource: Named): boolean {
    return this.#resources[position] === resourcePrint(resource);
  }

  /** Whether it was sent at any position. */
  has(resource: Named): boolean {
    return this.#known.has(resourcePrint(resource));
  }

  /** @param resource as an output names it */
  hasOutput(resource: string): boolean {
    return this.#outputs.has(printOf(resource));
  }
}

/** Resources of all the sets that are kept: some 100 bytes each. */
const mostKept = 250_000;

/**
 * What operations were sent with, read once for each payload.
 * @returns null when that is not kept any more, or an earlier release did not keep it
 */
export type SentNamesOf = (sent: SentOperation) => Promise<SentNames | null>;

export function createSentNames(payloads: Pick<Payloads, 'setOf'>): SentNamesOf {
  const kept = new Map<string, SentNames>();
  let resources = 0;
  return async ({ payload_digest: digest }) => {
    if (digest === null) return null;
    const known = kept.get(digest);
    if (known) {
      // The one that is used last stays longest.
      kept.delete(digest);
      kept.set(digest, known);
      return known;
    }
    const set = await payloads.setOf(digest);
    if (set === null) return null;
    const found = new SentNames(set.resources);
    if (kept.has(digest)) return found;
    kept.set(digest, found);
    resources += found.count;
    for (const [oldest, set] of kept) {
      if (resources <= mostKept || oldest === digest) break;
      kept.delete(oldest);
      resources -= set.count;
    }
    return found;
  };
}
