import type { FieldChange } from '@muster/protocol';
import type { ResourceBodies } from '@muster/protocol/module';
import { parseStanzas } from '../../host/packages/dpkg.ts';
import { keyFault } from '../package-source/source-and-key.ts';

/** Pure functions that render and parse a source in apt's format. */

type Body = ResourceBodies['apt-repository'];

export const sourcePath = (name: string): string => `/etc/apt/sources.list.d/${name}.sources`;
export const keyPath = (name: string): string => `/etc/apt/keyrings/${name}.asc`;

export function renderSource({ name, uris, suites, components, signed_by }: Body): string {
  return [
    '# Written by Muster; a change by hand is undone by the next apply.',
    'Types: deb',
    `URIs: ${uris.join(' ')}`,
    `Suites: ${suites.join(' ')}`,
    ...(components == null || components.length === 0 ? [] : [`Components: ${components.join(' ')}`]),
    ...(signed_by == null ? [] : [`Signed-By: ${keyPath(name)}`]),
    '',
  ].join('\n');
}

/** Returns the reason why the body cannot be rendered as a source, or null if it can. */
export function sourceFault({ uris, suites, components, signed_by }: Body): string | null {
  const uri = uris.find((text) => !/^[a-z][a-z0-9+.-]*:/.test(text));
  if (uri !== undefined) return 'a URI in `uris` has no scheme; add one, such as https:';
  const exact = suites.filter((suite) => suite.endsWith('/'));
  const named = components ?? [];
  if (exact.length > 0 && named.length > 0)
    return `the suite ${exact[0]} is a path, so \`components\` must not be declared`;
  if (exact.length < suites.length && named.length === 0)
    return 'it needs `components`, or suites that are paths and end in "/"';
  return signed_by == null ? null : keyFault('signed_by', signed_by);
}

const fieldsOf = { uris: 'uris', suites: 'suites', components: 'components', types: 'types', signed_by: 'signed-by' };

function read(text: string | null): Map<string, string> | null {
  if (text === null) return null;
  const stanzas = [...parseStanzas(withoutComments(text))];
  return stanzas.length === 1 ? (stanzas[0] as Map<string, string>) : null;
}

const withoutComments = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n');

/** Returns the differences between two versions of the file, as source fields. */
export function sourceChanges(from: string | null, to: string | null): FieldChange[] {
  if (from === to) return [];
  const [before, after] = [read(from), read(to)];
  const changes = Object.entries(fieldsOf).flatMap(([field, key]): FieldChange[] => {
    const [old, fresh] = [before?.get(key) ?? null, after?.get(key) ?? null];
    return old === fresh ? [] : [{ field, from: old, to: fresh }];
  });
  return changes.length > 0 ? changes : [{ field: 'source_file', from: 'changed by hand', to: 'as declared' }];
}
