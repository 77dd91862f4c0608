import { hash } from 'node:crypto';
import { boundedName, nameLengths, type ResourceResult } from '@muster/protocol';
import { limits } from '@muster/protocol/wire';
import type { SentOperation } from '../../store/queries/operations.ts';
import type { Payloads } from './payloads.ts';

/**
 * The resources of a dispatched operation, stored as hashes, so that they can be kept for every open operation. Reports are
 * compared with them, so that nothing is stored under a name that the agent invented.
 */

export type Named = Pick<ResourceResult, 'module' | 'type' | 'identity'>;

/** Returns 48 bits of a digest. A collision only lets an agent use a name that the orchestrator could have sent anyway. */
export const printOf = (text: string): number => hash('sha256', text, 'buffer').readUIntBE(0, 6);

const resourcePrint = ({ module, type, identity }: Named): number =>
  printOf(
    [
      boundedName(module, nameLengths.module),
      boundedName(type, nameLengths.type),
      boundedName(identity, nameLengths.identity),
    ].join('\0'),
  );

/** Returns the resource name that agents use for an output. */
export const outputName = ({ module, identity }: Pick<Named, 'module' | 'identity'>): string =>
  boundedName(`${module}/${identity}`, limits.outputResourceLength);

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

  /** Reports whether the operation has this resource at this position. */
  isAt(position: number, resource: Named): boolean {
    return this.#resources[position] === resourcePrint(resource);
  }

  /** Reports whether the operation has this resource at any position. */
  has(resource: Named): boolean {
    return this.#known.has(resourcePrint(resource));
  }

  /**
   * Reports whether the operation has a resource with this output.
   * @param resource name of the output
   */
  hasOutput(resource: string): boolean {
    return this.#outputs.has(printOf(resource));
  }
}

/** Maximum number of resources in all cached sets. Each takes about 100 bytes. */
const maxCached = 250_000;

/**
 * Returns the names in a dispatched operation, cached by payload.
 * @returns null if the payload is no longer stored, or an earlier release did not store it
 */
export type SentNamesOf = (sent: SentOperation) => Promise<SentNames | null>;

export function createSentNames(payloads: Pick<Payloads, 'setOf'>): SentNamesOf {
  const cache = new Map<string, SentNames>();
  let resources = 0;
  return async ({ payload_digest: digest }) => {
    if (digest === null) return null;
    const known = cache.get(digest);
    if (known) {
      // Moves the entry to the end, because the first entry is evicted next.
      cache.delete(digest);
      cache.set(digest, known);
      return known;
    }
    const set = await payloads.setOf(digest);
    if (set === null) return null;
    const found = new SentNames(set.resources);
    if (cache.has(digest)) return found;
    cache.set(digest, found);
    resources += found.count;
    for (const [oldest, set] of cache) {
      if (resources <= maxCached || oldest === digest) break;
      cache.delete(oldest);
      resources -= set.count;
    }
    return found;
  };
}
