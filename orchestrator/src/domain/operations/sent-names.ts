import { hash } from 'node:crypto';
import { boundedName, nameLengths, type ResourceResult } from '@muster/protocol';
import { limits } from '@muster/protocol/wire';
import type { SentOperation } from '../../store/queries/operations/operations.ts';
import type { Payloads } from './payloads.ts';

/**
 * The resource names of a dispatched operation. Reports are compared with them, so that nothing is stored under a name
 * that the agent invented.
 */

export type Named = Pick<ResourceResult, 'module' | 'type' | 'identity'>;

/** Returns 48 bits of a digest. In a collision, an agent can only use a name that the orchestrator could have sent. */
export const printOf = (text: string): number => hash('sha256', text, 'buffer').readUIntBE(0, 6);

const boundedNames = ({ module, type, identity }: Named): Named => ({
  module: boundedName(module, nameLengths.module),
  type: boundedName(type, nameLengths.type),
  identity: boundedName(identity, nameLengths.identity),
});

const resourcePrint = ({ module, type, identity }: Named): number => printOf([module, type, identity].join('\0'));

/** Returns the name that agents use for the output of a resource. */
export const outputName = ({ module, identity }: Pick<Named, 'module' | 'identity'>): string =>
  boundedName(`${module}/${identity}`, limits.outputResourceLength);

export class SentNames {
  readonly #resources: readonly Named[];
  readonly #known: ReadonlySet<number>;
  readonly #outputs: ReadonlySet<number>;

  constructor(resources: readonly Named[]) {
    this.#resources = resources.map(boundedNames);
    this.#known = new Set(this.#resources.map(resourcePrint));
    this.#outputs = new Set(resources.map((resource) => printOf(outputName(resource))));
  }

  get count(): number {
    return this.#resources.length;
  }

  /** Approximate size in memory, in bytes. */
  get weight(): number {
    return this.#resources.reduce(
      (sum, { module, type, identity }) => sum + resourceBytes + module.length + type.length + identity.length,
      0,
    );
  }

  /** Reports whether the operation has the resource at this position, based on the names that agents use. */
  isAt(position: number, { module, type, identity }: Named): boolean {
    const sent = this.#resources[position];
    return sent !== undefined && sent.identity === identity && sent.type === type && sent.module === module;
  }

  /** Reports whether the operation has the resource at any position, based on the names that agents use. */
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

/** Overhead per resource in bytes. */
const resourceBytes = 150;
/** Maximum total weight of the cache, in bytes. */
const maxCached = 32 * 1024 * 1024;

/**
 * Returns the names in a dispatched operation, cached by payload.
 * @returns null if the payload is no longer stored, or an earlier release did not store it
 */
export type SentNamesOf = (sent: SentOperation) => Promise<SentNames | null>;

export function createSentNames(payloads: Pick<Payloads, 'setOf'>): SentNamesOf {
  const cache = new Map<string, { names: SentNames; weight: number }>();
  let cached = 0;
  return async ({ payload_digest: digest }) => {
    if (digest === null) return null;
    const known = cache.get(digest);
    if (known) {
      // Moves the entry to the end, because the first entry is evicted next.
      cache.delete(digest);
      cache.set(digest, known);
      return known.names;
    }
    const set = await payloads.setOf(digest);
    if (set === null) return null;
    const names = new SentNames(set.resources);
    if (cache.has(digest)) return names;
    const { weight } = names;
    cache.set(digest, { names, weight });
    cached += weight;
    for (const [oldest, entry] of cache) {
      if (cached <= maxCached || oldest === digest) break;
      cache.delete(oldest);
      cached -= entry.weight;
    }
    return names;
  };
}
