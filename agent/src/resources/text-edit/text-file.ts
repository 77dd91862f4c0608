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
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  typeDrift,
} from '../provider/provider.ts';
import { runValidation } from '../provider/validation.ts';
import { joinLines, splitLines, type TextLine } from './lines.ts';

/** Observes and rewrites a file of which a resource declares only a part. */

/** The observed object at the path. The journal does not store `content`, so it is null after the agent restarts. */
export interface SeenText {
  type: Inspected['type'];
  /** Type of the object if it is not a file. */
  kind: string | null;
  /** Null if the file does not exist. */
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
      `${path} has ${content.size} bytes; the agent manages parts of files only up to ${maxContentInMemory / 1024 / 1024} MiB`,
    );
  const ownership = found.type === 'file' ? { uid: found.uid, gid: found.gid, mode: found.mode } : null;
  return { type: found.type, kind, ownership, content: content?.bytes ?? null };
}

export const linesOf = ({ content }: SeenText): TextLine[] => (content === null ? [] : splitLines(content));

export const notAFile = (resource: ResolvedResource, { kind }: Pick<SeenText, 'kind'>): HostFailure =>
  new HostFailure(
    kind?.startsWith('a symbolic') === true
      ? `${pathOf(resource)} is ${kind}, which the agent does not follow; declare the path of the file itself`
      : `${pathOf(resource)} is ${kind}, not a file; it is not changed`,
  );

/**
 * Returns the drift if the path is neither a file nor free; otherwise null.
 * @throws HostFailure unless this is a drift check
 */
export function otherObject(
  resource: ResolvedResource,
  seen: Pick<SeenText, 'type' | 'kind'>,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference | null {
  if (seen.type === 'file' || seen.type === 'absent') return null;
  if (purpose !== 'drift') throw notAFile(resource, seen);
  return isAbsent(resource) ? presenceDrift() : typeDrift({ type: seen.type }, 'file');
}

/**
 * Returns why a removal has nothing to do; null if the path has a file.
 * @param isRestored whether the removal restores text
 * @throws HostFailure if it would restore text in an object of another type
 */
export function nothingLeft(
  resource: ResolvedResource,
  seen: Pick<SeenText, 'type' | 'kind'>,
  isRestored: boolean,
): Difference | null {
  if (seen.type === 'file') return null;
  if (seen.type === 'absent') return nothing('already removed, with its file');
  if (isRestored) throw notAFile(resource, seen);
  return nothing('already removed; the path is no longer a file');
}

/**
 * Returns the missing prerequisites: the file, because the agent does not create a file that belongs to others, and the
 * program that `validate` needs.
 */
export function awaiting(
  resource: ResolvedResource,
  seen: SeenText & { missingProgram?: string },
  { purpose, willBeThere }: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Pick<Difference, 'awaits'> {
  if (purpose === 'drift') return {};
  const path = pathOf(resource);
  const awaits: NonNullable<Difference['awaits']> = [];
  if (seen.type === 'absent' && !willBeThere(path))
    awaits.push({
      kind: 'programs',
      message: `there is no file ${path}, and a line or block does not create it; declare the file with file-unix, or declare the resource that creates it before this one`,
    });
  if (seen.missingProgram !== undefined) {
    const program = resource.sensitive_fields.includes('validate') ? 'a program' : seen.missingProgram;
    awaits.push({ kind: 'programs', message: `\`validate\` needs ${program}, which does not exist` });
  }
  return awaits.length === 0 ? {} : { awaits };
}

/** Truncates text for a change in a result. */
export const shown = (text: string): string => (text.length > 4096 ? `${text.slice(0, 4090).toWellFormed()}…` : text);

/** Returns a diff of only the changed lines, because its context could show another resource's secret. */
export const changedLines = (
  resource: ResolvedResource,
  { content }: SeenText,
  after: readonly TextLine[],
): string | null => (content === null ? null : contentDiff(pathOf(resource), content, joinLines(after), 0));

/** Returns the ownership after an edit, which clears a set-ID bit on another user's file and changes nothing else. */
export const ownershipEdited = (found: Ownership): Ownership =>
  decideOwnership({}, found, { type: 'file', content: 'edited' }, asCreated(found.mode));

/** Returns the permission changes that result from editing the text. */
export const bitsLost = ({ ownership }: Pick<SeenText, 'ownership'>): FieldChange[] =>
  ownership === null ? [] : modeChange(ownership, ownershipEdited(ownership));

/**
 * Edits the file's current text instead of the observed one, because another resource may have changed it since the
 * observation. Keeps the owner, and all permissions except set-ID bits.
 * @param edit returns the resulting lines; null to keep the current ones
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
      keepsAclOf: found,
      keepsModeOf: found,
      beforeRename: async (temporary) => {
        if (validate !== null) await runValidation(validate, temporary, resource, machine);
        expectUnchanged(parent, name, found);
      },
    });
    machine.changedDirectory(parent.path);
  });
}
