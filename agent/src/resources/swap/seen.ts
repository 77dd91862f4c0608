import { posix } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import {
  missingSwapProgram,
  readSwapFile,
  readSwaps,
  refusedFileSystem,
  type SwapFile,
  type Swaps,
} from '../../host/swap.ts';
import { freeBytesAt, statusOf } from '../../host/trees/entries.ts';
import { folderOf, trustedPath } from '../archive/place.ts';
import { type Entry, fstab, parseEntry, swapEntries } from '../mount-unix/fstab.ts';
import type { Database, Machine } from '../provider/provider.ts';
import { type LinesBefore, type PlacedLine, placedLine } from '../text-edit/placed-lines.ts';
import { linesOf, lookAtText, type SeenText } from '../text-edit/text-file.ts';

export type Declared = ResolvedResource<'swap'>;

export interface SeenSwap {
  /** The object at the path. */
  found: 'absent' | 'swap' | 'other';
  file: (SwapFile & { hasHoles: boolean }) | null;
  /** Type of the file system, if it does not support swap files. */
  refused: string | null;
  /** Whether the file system has enough space for the declared size. */
  hasRoom: boolean;
  fstab: Omit<SeenText, 'content'>;
  lines: PlacedLine[];
  /** Priority of the swap in use; null if the file is not in use. */
  live: number | null;
  /** How to install a missing program; null if none is missing. */
  missing: string | null;
}

/** State before the agent's first change. */
export type SwapBefore = {
  /** Null if there was no swap file. */
  file: { [field in keyof SwapFile]: SwapFile[field] } | null;
  lines: LinesBefore;
  /** Priority of the swap in use; null if the file was not in use. */
  live: number | null;
};

export const swaps: Database<Swaps> = { name: 'swap', read: readSwaps };

export const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';

const factors: Readonly<Record<string, number>> = { M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 };

/** Returns the declared size in bytes; 0 if the resource is declared absent. */
export const sizeOf = ({ body: { size } }: Declared): number =>
  size == null ? 0 : Number(size.slice(0, -1)) * (factors[size.slice(-1)] ?? Number.NaN);

/** Returns the declared line; null if the resource is declared absent. An undeclared option stays unchanged. */
export function declaredEntry(resource: Declared, lines: readonly { text: string }[]): Entry | null {
  if (isAbsent(resource)) return null;
  const { path, options, priority } = resource.body;
  const first = swapEntries(path, lines)[0];
  const current = first === undefined ? null : parseEntry(lines[first]?.text ?? '');
  const words = current?.options.split(',') ?? [];
  const isPriority = (word: string) => word.startsWith('pri=');
  const others = options?.split(',') ?? (current === null ? ['sw'] : words.filter((word) => !isPriority(word)));
  const wanted = priority == null ? words.filter(isPriority) : [`pri=${priority}`];
  const isSame = [...others, ...wanted].sort().join() === [...words].sort().join();
  return {
    device: path,
    path: 'none',
    type: 'swap',
    options: isSame ? words.join(',') : [...others, ...wanted].join(','),
    dump: current?.dump ?? '0',
    pass: current?.pass ?? '0',
  };
}

/** Returns the priority in fstab(5) options; null if there is none. */
export function priorityIn(options: string): number | null {
  const text = /(?:^|,)pri=(\d{1,5})(?:,|$)/.exec(options)?.[1];
  return text === undefined ? null : Number(text);
}

export async function look(resource: Declared, machine: Machine): Promise<SeenSwap> {
  const { path } = resource.body;
  const { content, ...seen } = lookAtText({ ...resource, body: { ...resource.body, path: fstab } }, machine);
  const lines = linesOf({ ...seen, content });
  const folder = trustedPath(machine.walk, folderOf(path), 'null');
  const place = folder === null ? null : `${folder}/${posix.basename(path)}`;
  const exists = place !== null && statusOf(place) !== null;
  const file = exists ? readSwapFile(place) : null;
  return {
    found: file !== null ? 'swap' : exists ? 'other' : 'absent',
    file,
    refused: folder === null ? null : refusedFileSystem(folder || '/'),
    hasRoom: folder === null || freeBytesAt(folder || '/') + (file?.size ?? 0) >= sizeOf(resource),
    fstab: seen,
    lines: swapEntries(path, lines).map((index) => placedLine(lines, index)),
    live: (await machine.database(swaps)).get(path) ?? null,
    missing: missingSwapProgram(),
  };
}
