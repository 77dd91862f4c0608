import type { FieldChange } from '@muster/protocol';
import type { ResourceBodies } from '@muster/protocol/module';
import { keyFault } from '../package-source/source-and-key.ts';

/** Pure functions that render and parse a source in dnf's format. */

type Body = ResourceBodies['dnf-repository'];

export const sourcePath = (name: string): string => `/etc/yum.repos.d/${name}.repo`;
/**
 * Returns the path of the key file. It is in the same directory as the source, because dnf ignores files that do not
 * end in `.repo`.
 */
export const keyPath = (name: string): string => `/etc/yum.repos.d/${name}.asc`;

/**
 * The fields that have the same name in the file. `title` becomes `name`, and `gpgkey` becomes the path of the key
 * file.
 */
const fields = [
  ...['baseurl', 'metalink', 'mirrorlist', 'enabled', 'gpgcheck', 'repo_gpgcheck', 'priority', 'excludepkgs'],
  'module_hotfixes',
] as const satisfies readonly (keyof Body)[];

const textOf = (value: string | boolean | number | readonly string[]): string =>
  typeof value === 'boolean' ? (value ? '1' : '0') : typeof value === 'object' ? value.join(' ') : String(value);

export function renderSource(body: Body): string {
  // dnf uses the key only if signature checking is enabled, which is not the default.
  const { gpgcheck = body.gpgkey == null ? undefined : true } = body;
  const values: Body = { ...body, ...(gpgcheck === undefined ? {} : { gpgcheck }) };
  return [
    '# Written by Muster; a change by hand is undone by the next apply.',
    `[${body.name}]`,
    `name=${body.title ?? body.name}`,
    ...fields.flatMap((field) => {
      const value = values[field];
      return value == null ? [] : [`${field}=${textOf(value)}`];
    }),
    ...(body.gpgkey == null ? [] : [`gpgkey=file://${keyPath(body.name)}`]),
    '',
  ].join('\n');
}

/** Returns the reason why the body cannot be rendered as a source, or null if it can. */
export function sourceFault({ baseurl, metalink, mirrorlist, gpgkey }: Body): string | null {
  const urls = [
    ...(baseurl ?? []),
    ...(metalink == null ? [] : [metalink]),
    ...(mirrorlist == null ? [] : [mirrorlist]),
  ];
  if (urls.length === 0) return 'it needs `baseurl`, `metalink`, or `mirrorlist`';
  if (urls.some((url) => !/^[a-z][a-z0-9+.-]*:/.test(url))) return 'an address has no scheme; add one, such as https:';
  return gpgkey == null ? null : keyFault('gpgkey', gpgkey);
}

function read(text: string | null): Map<string, string> {
  const lines = (text ?? '').split('\n').filter((line) => /^[a-z_]+\s*=/.test(line));
  return new Map(
    lines.map((line) => {
      const sign = line.indexOf('=');
      return [line.slice(0, sign).trim(), line.slice(sign + 1).trim()];
    }),
  );
}

const keys: ReadonlyMap<string, string> = new Map([
  ['title', 'name'],
  ...fields.map((field): [string, string] => [field, field]),
  ['gpgkey', 'gpgkey'],
]);

/** Returns the differences between two versions of the file, as source fields. */
export function sourceChanges(from: string | null, to: string | null): FieldChange[] {
  if (from === to) return [];
  const [before, after] = [read(from), read(to)];
  const changes = [...keys].flatMap(([field, key]): FieldChange[] => {
    const [old, fresh] = [before.get(key) ?? null, after.get(key) ?? null];
    return old === fresh ? [] : [{ field, from: old, to: fresh }];
  });
  return changes.length > 0 ? changes : [{ field: 'source_file', from: 'changed by hand', to: 'as declared' }];
}
