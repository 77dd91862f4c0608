import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { writeFileAtomically } from '../../host/files/atomic-write.ts';
import { asCreated, decideOwnership } from '../../host/files/decide-ownership.ts';
import {
  expectUnchanged,
  type Inspected,
  inspect,
  maxContentInMemory,
  type Ownership,
} from '../../host/files/inspect.ts';
import { contentDiff } from '../provider/content-diff.ts';
import { modeChange } from '../provider/ownership.ts';
import type { Circumstances, Difference, Machine } from '../provider/provider.ts';
import { runValidation } from '../provider/validation.ts';
import { joinLines, splitLines, type TextLine } from './lines.ts';

/** A file that others own and of which a resource declares a part. */

/**
 * The object with this path. The journal does not keep `content`, so after a restart null means that the content is
 * unknown.
 */
export interface SeenText {
  type: Inspected['type'];
  /** Type of the object if it is not a file. */
  kind: string | null;
  /** Null: the file does not exist. */
  ownership: Ownership | null;
  content: Buffer | null;
}

type TextResource = ResolvedResource & { body: { path: string; ensure?: string | null } };
export const pathOf = (resource: ResolvedResource): string => (resource as TextResource).body.path;
export const isAbsent = (resource: ResolvedResource): boolean => (resource as TextResource).body.ensure === 'absent';

export const lookAtText = (resource: ResolvedResource, machine: Pick<Machine, 'walk'>): SeenText =>
  textOf(pathOf(resource), inspect(machine.walk, pathOf(resource), true));

function textOf(path: string, found: Inspected): SeenText {
  const kind =
    found.type === 'symlink'
      ? `a symbolic link to ${found.target}`
      : found.type === 'other'
        ? `a ${found.kind}`
        : found.type === 'directory'
          ? 'a directory'
          : null;
  const content = found.type === 'file' ? found.content : null;
  if (content !== null && content.bytes === null)
    throw new HostFailure(
      `${path} has ${content.size} bytes; a part of a file is only managed up to ${maxContentInMemory / 1024 / 1024} MiB`,
    );
  const ownership = found.type === 'file' ? { uid: found.uid, gid: found.gid, mode: found.mode } : null;
  return { type: found.type, kind, ownership, content: content?.bytes ?? null };
}

export const linesOf = ({ content }: SeenText): TextLine[] => (content === null ? [] : splitLines(content));

export const notAFile = (resource: ResolvedResource, { kind }: SeenText): HostFailure =>
  new HostFailure(
    kind?.startsWith('a symbolic') === true
      ? `${pathOf(resource)} is ${kind}, which is not followed; declare the path of the file itself`
      : `${pathOf(resource)} is ${kind}, not a file; it is not changed`,
  );

/** The missing prerequisite if the file does not exist. The agent does not create the file, because others own it. */
export function awaitsFile(
  resource: ResolvedResource,
  seen: SeenText,
  { purpose, willBeThere }: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Pick<Difference, 'awaits'> {
  const path = pathOf(resource);
  if (seen.type !== 'absent' || purpose === 'drift' || willBeThere(path)) return {};
  const message = `there is no file ${path}; a line or block does not create it; declare it as file-unix too, or declare the resource that creates it before this one`;
  return { awaits: [{ kind: 'programs', message }] };
}

/** A diff of only the changed lines. A diff with context could show a secret of another resource. */
export const changedLines = (
  resource: ResolvedResource,
  { content }: SeenText,
  after: readonly TextLine[],
): string | null => (content === null ? null : contentDiff(pathOf(resource), content, joinLines(after), 0));

/** The first change clears a set-ID bit of another user's file. All other permissions stay. */
export const ownershipEdited = (found: Ownership): Ownership =>
  decideOwnership({}, found, { type: 'file', content: 'edited' }, asCreated(found.mode));

/** Changes of the permissions that come with a change of the text. */
export const bitsLost = ({ ownership }: Pick<SeenText, 'ownership'>): FieldChange[] =>
  ownership === null ? [] : modeChange(ownership, ownershipEdited(ownership));

/**
 * Changes the current text of the file, because another resource of the same run may have changed it since the
 * observation. Owner and permissions stay.
 * @param edit     returns the wanted lines; null to keep them
 * @param validate command that must succeed on the new content
 */
export async function rewrite(
  resource: ResolvedResource,
  machine: Machine,
  edit: (seen: SeenText) => TextLine[] | null,
  validate: string | null = null,
): Promise<void> {
  const path = pathOf(resource);
  const found = inspect(machine.walk, path, true);
  const seen = textOf(path, found);
  if (found.type !== 'file') {
    if (found.type === 'absent') throw new HostFailure(`${path} was removed during the apply; apply again`);
    throw notAFile(resource, seen);
  }
  const lines = edit(seen);
  if (lines === null) return;
  await machine.walk.within(path, 'make', async (parent, name) => {
    await writeFileAtomically(parent, name, {
      content: { bytes: joinLines(lines) },
      ...ownershipEdited(found),
      beforeRename: async (temporary) => {
        if (validate !== null) await runValidation(validate, temporary, resource, machine);
        expectUnchanged(parent, name, found);
      },
    });
    machine.changedDirectory(parent.path);
  });
}
