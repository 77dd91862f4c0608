import type { FieldChange, ResourceResult } from '@muster/protocol';
import { maxExampleChanges, maxExamples, maxExampleText, type OffAgent } from '@muster/protocol/http';

type Example = OffAgent['drift'][number]['examples'][number];

/** Shortens a text that an agent chose, so that a page of the reconcile list stays small. */
export const shortened = (text: string): string =>
  text.length > maxExampleText ? `${text.slice(0, maxExampleText - 1).toWellFormed()}…` : text;

const shortenedChange = ({ field, from, to }: FieldChange): FieldChange => ({
  field,
  from: from === null ? null : shortened(from),
  to: to === null ? null : shortened(to),
});

/** Returns the first resources of a drift record. */
export const examplesOf = (resources: readonly ResourceResult[]): Example[] =>
  resources.slice(0, maxExamples).map(({ type, identity, action, changes }) => ({
    ...{ type: shortened(type), identity: shortened(identity), action },
    changes: changes.slice(0, maxExampleChanges).map(shortenedChange),
  }));

/**
 * Returns examples with the names of fields but without values, for a record that is too large to read.
 * @param drifted fields by resource key, such as `file:/etc/motd`
 */
export const examplesOfKeys = (drifted: Readonly<Record<string, readonly string[]>>): Example[] =>
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
