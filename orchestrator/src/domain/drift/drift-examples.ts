import type { FieldChange, ResourceResult } from '@muster/protocol';
import { maxExampleChanges, maxExamples, maxExampleText, type OffAgent } from '@muster/protocol/http';
import { keyOf } from '../operations/applied-state.ts';

type Example = OffAgent['drift'][number]['examples'][number];

/** Shortens text that an agent chose, so that a page of the reconcile list stays small. */
export const shortened = (text: string): string =>
  text.length > maxExampleText ? `${text.slice(0, maxExampleText - 1).toWellFormed()}…` : text;

/** Maximum size of all example resources on a page of the reconcile list, in bytes of JSON. */
const maxPageBytes = 2 * 1024 * 1024;

/**
 * Limits each agent to an equal share of the example resources on a page, because agents choose the text and therefore
 * the sizes.
 */
export class ExampleShare {
  #bytes: number;

  constructor(agents: number) {
    this.#bytes = maxPageBytes / agents;
  }

  /**
   * Returns the resources that fit into the rest of the share.
   * @param reduce returns a smaller form of a resource that does not fit
   */
  take<T>(examples: readonly T[], reduce: (example: T) => T = (example) => example): T[] {
    return examples.flatMap((example) => [example, reduce(example)].find((form) => this.#fits(form)) ?? []);
  }

  /** Deducts an example's bytes from the share if the example fits. */
  #fits(example: unknown): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(example));
    if (bytes > this.#bytes) return false;
    this.#bytes -= bytes;
    return true;
  }
}

/** Omits a resource's changes. */
export const withoutChanges = (example: Example): Example => ({ ...example, changes: [] });

const shortenedChange = ({ field, from, to }: FieldChange): FieldChange => ({
  field,
  from: from === null ? null : shortened(from),
  to: to === null ? null : shortened(to),
});

/** The names of drifted fields by resource key, such as `file:/etc/motd`. */
type Drifted = Readonly<Record<string, readonly string[]>>;

/**
 * Returns the first resources of a drift record that are still drifted.
 * @param drifted fields that are still drifted; null if unknown. An apply removes the fields of corrected resources
 *   from `drifted`, but does not change the record.
 */
export const examplesOf = (resources: readonly ResourceResult[], drifted: Drifted | null): Example[] =>
  resources
    .filter(({ type, identity }) => drifted === null || Object.hasOwn(drifted, keyOf(type, identity)))
    .slice(0, maxExamples)
    .map(({ type, identity, action, changes }) => ({
      ...{ type: shortened(type), identity: shortened(identity), action },
      changes: changes.slice(0, maxExampleChanges).map(shortenedChange),
    }));

/** Returns examples with field names but without values, for a record that is too large to read. */
export const examplesOfKeys = (drifted: Drifted): Example[] =>
  Object.entries(drifted)
    .slice(0, maxExamples)
    .map(([key, fields]) => {
      const colon = key.indexOf(':');
      return {
        ...{ type: shortened(key.slice(0, Math.max(0, colon))), identity: shortened(key.slice(colon + 1)) },
        action: 'none',
        changes: fields.slice(0, maxExampleChanges).map((field) => ({ field, from: null, to: null })),
      };
    });
