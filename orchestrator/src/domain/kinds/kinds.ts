import { MusterError } from '@muster/protocol';
import type { Kind, KindWithFields } from '@muster/protocol/http';
import {
  executableKinds,
  kindExample,
  kindFields,
  kinds as kindTable,
  type ResourceType,
  resourceTypes,
} from '@muster/protocol/module';
import { suggestion } from '@muster/protocol/nearest';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';

function describe(name: ResourceType): KindWithFields {
  const { description, platforms, exclusive } = kindTable[name];
  const fields = kindFields(name);
  return {
    ...{ name, summary: description, platforms: [...platforms], executable: executableKinds.has(name) },
    ...{ field_count: fields.length, fields, exclusive: exclusive.map((group) => [...group]) },
    example: kindExample(name),
  };
}

/** All kinds with their fields, created once at startup. */
const byName: ReadonlyMap<string, KindWithFields> = new Map(resourceTypes.map((name) => [name, describe(name)]));
const kinds: readonly Kind[] = [...byName.values()].map(({ fields, exclusive, example, ...kind }) => kind);

/** Lists the kinds in the order of docs/module-kinds.md: packages, files, accounts, services, and others. */
export const listKinds = (request: PageRequest): Promise<Page<Kind>> =>
  readPage(request, async ({ limit, offset }) => kinds.slice(offset, offset + limit));

/**
 * Returns a kind with its fields.
 * @throws MusterError kind_not_found, with a suggestion for a misspelled name
 */
export function getKind(name: string): KindWithFields {
  const found = byName.get(name);
  if (found === undefined)
    throw new MusterError(
      'kind_not_found',
      `there is no kind ${JSON.stringify(name.slice(0, 64))}${suggestion(name, [...byName.keys()])}`,
    );
  return found;
}
