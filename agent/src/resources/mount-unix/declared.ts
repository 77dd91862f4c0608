import type { ResolvedResource } from '@muster/protocol/module';
import { type Entry, entriesAt, parseEntry } from './fstab.ts';

export type Declared = ResolvedResource<'mount-unix'>;

/** Returns the mount point without a trailing slash. */
export const pathOf = ({ body }: Declared): string => body.path.replace(/(?<=.)\/$/, '');

/** Reports whether the resource declares that the file system is mounted. */
export const isMounted = ({ body }: Declared): boolean => body.ensure !== 'absent' && body.mounted !== false;

/**
 * Returns the declared line; null if the resource is declared absent. A field that is not declared keeps its current
 * value.
 */
export function declaredEntry(resource: Declared, lines: readonly { text: string }[]): Entry | null {
  const { device, type, options, dump, pass, ensure } = resource.body;
  if (ensure === 'absent') return null;
  const path = pathOf(resource);
  const first = entriesAt(path, lines)[0];
  const current = first === undefined ? null : parseEntry(lines[first]?.text ?? '');
  return {
    device: device ?? current?.device ?? '',
    path,
    type: type ?? current?.type ?? '',
    options: options ?? current?.options ?? 'defaults',
    dump: String(dump ?? current?.dump ?? 0),
    pass: String(pass ?? current?.pass ?? 0),
  };
}
