import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { readAccountFiles } from '../../host/accounts/account-files.ts';
import { HostFailure } from '../../host/failure.ts';
import { listDirectory, type Ownership } from '../../host/files/inspect.ts';
import { accountDatabase } from '../provider/account-database.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Difference,
  type Machine,
  nothing,
  type Outcome,
  presenceDrift,
  restoring,
} from '../provider/provider.ts';
import { bitsLost } from '../text-edit/text-file.ts';
import { directoryOf, fileOf, lookAtKeys, type Owner, removeKeyFile, writeKeys } from './file.ts';
import {
  added,
  commented,
  linesWith,
  onlyKeys,
  type PlacedLine,
  parseKeyLine,
  restoreLines,
  without,
  withoutAll,
} from './lines.ts';

export interface SeenKey {
  /** Null if the user does not exist. */
  owner: Owner | null;
  /** Lines with the key; each character is one byte. */
  lines: PlacedLine[];
  /** Null if the file does not exist. */
  ownership: Ownership | null;
  /** Whether the file contains anything other than lines with the key. */
  hasMore: boolean;
  /** The file and directory that an apply would create. */
  makes: { file: boolean; directory: boolean };
  /** Whether the last line lacks a line break. */
  open: boolean;
}

/** State before the agent first changed anything about a key. */
export type KeyBefore =
  | { was: 'absent'; made: { file: boolean; directory: boolean }; open: boolean }
  | { was: 'there'; comment: string | null; removed: PlacedLine[] | null };

type Body = ResourceBodies['ssh-authorized-key'];
type Declared = ResolvedResource<'ssh-authorized-key'>;

const asBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');
const asText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('utf8');

/** Returns the comment of the first line with the key, or null if there is no such line. */
const commentOf = ({ lines }: SeenKey): string | null => {
  const [first] = lines;
  return first === undefined ? null : (parseKeyLine(first.text)?.comment ?? '');
};

/** A key in a user's ~/.ssh/authorized_keys. The provider preserves all other lines. */
export const sshAuthorizedKey = defineProvider<'ssh-authorized-key', SeenKey, KeyBefore>({
  type: 'ssh-authorized-key',
  fields: { user: 'text', key: 'text', comment: 'text?', ensure: 'text?' },
  // Several keys share a file, so no resource owns the path.
  makes: (_resource, { owner }) => (owner === null ? [] : [directoryOf(owner)]),

  watched(resource) {
    try {
      const entry = readAccountFiles().users.get(resource.body.user);
      return entry === undefined ? [] : [fileOf(entry)];
    } catch (error) {
      if (error instanceof HostFailure) return [];
      throw error;
    }
  },

  check(resource) {
    const { key, comment } = resource.body;
    // A line of this file grants access, so a value must not be able to add another line or option.
    if (!/^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}$/.test(key))
      throw new HostFailure(
        'the key must be its type and its base64 text, such as ssh-ed25519 AAAA…, without options or a comment',
      );
    if (comment != null && /[\n\r\0]/.test(comment)) throw new HostFailure('the comment must be one line');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),

  diff(resource, seen) {
    const { user, comment, ensure } = resource.body;
    if (ensure === 'absent') return seen.lines.length === 0 ? nothing() : absence(seen);
    const changes: FieldChange[] = [];
    const there = commentOf(seen);
    if (there === null) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
    if (comment != null && there !== asBytes(comment).trim())
      changes.push({ field: 'comment', from: there === null ? null : asText(there), to: comment.trim() });
    if (changes.length === 0) return nothing();
    return {
      action: there === null ? 'create' : 'update',
      changes: [...changes, ...bitsLost(seen)],
      diff: null,
      ...(seen.owner === null
        ? { awaits: [{ kind: 'accounts' as const, message: `there is no user ${user} in /etc/passwd` }] }
        : {}),
    };
  },

  async remember(resource, seen, _difference, before) {
    if (before?.was === 'absent') return before;
    const there = commentOf(seen);
    if (there === null) return before ?? { was: 'absent', made: seen.makes, open: seen.open };
    const record = before ?? { was: 'there', comment: null, removed: null };
    const { ensure, comment } = resource.body;
    if (ensure === 'absent') return record.removed === null ? { ...record, removed: seen.lines } : record;
    return comment == null || record.comment !== null ? record : { ...record, comment: there };
  },

  async apply(resource, _seen, _difference, machine) {
    const { key, comment, ensure } = resource.body;
    return edit(resource, machine, (text) => {
      if (ensure === 'absent') return withoutAll(text, key);
      const declared = comment == null ? null : asBytes(comment).trim();
      if (linesWith(text, key).length === 0) return added(text, key, declared ?? '');
      return declared === null ? text : commented(text, key, declared);
    });
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),

  diffRemoval(_resource, before, seen) {
    const there = commentOf(seen);
    if (before.was === 'absent') {
      if (there === null) return nothing('already removed');
      const fileGoes = before.made.file && !seen.hasMore && seen.lines.length === 1;
      return fileGoes ? presenceDrift() : absence(seen);
    }
    if (seen.owner === null) return nothing('already removed, with its user');
    const changes: FieldChange[] = [];
    const previousComment = before.comment ?? (before.removed === null ? null : firstComment(before.removed));
    if (there === null) {
      if (before.removed === null) return nothing('already removed, but not by the agent');
      changes.push({ field: 'ensure', from: 'absent', to: 'present' });
    }
    if (previousComment !== null && previousComment !== there)
      changes.push({ field: 'comment', from: there === null ? null : asText(there), to: asText(previousComment) });
    if (changes.length > 0) changes.push(...bitsLost(seen));
    return restoring(changes);
  },

  async remove(resource, before, _seen, _difference, machine) {
    const { key } = resource.body;
    if (before.was === 'absent') return edit(resource, machine, (text) => without(text, key, before.open), before.made);
    return edit(resource, machine, (text) => {
      const back = before.removed === null ? text : restoreLines(withoutAll(text, key), before.removed);
      return before.comment === null ? back : commented(back, key, before.comment);
    });
  },
});

/** Returns the drift of a key that is declared absent. An apply removes its lines and keeps the file. */
function absence(seen: SeenKey): Difference {
  const drift = presenceDrift();
  return { ...drift, changes: [...drift.changes, ...bitsLost(seen)] };
}

const firstComment = ([first]: readonly PlacedLine[]): string | null =>
  first === undefined ? null : (parseKeyLine(first.text)?.comment ?? null);

async function ownerOf(user: string, machine: Machine): Promise<Owner | null> {
  const entry = (await machine.database(accountDatabase)).users.get(user);
  if (entry === undefined) return null;
  // Without a trailing slash, so that paths below the home `/` start with one slash.
  return { uid: entry.uid, gid: entry.gid, home: entry.home.replace(/\/+$/, '') };
}

async function look(resource: Declared, machine: Machine): Promise<SeenKey> {
  const { user, key } = resource.body;
  const owner = await ownerOf(user, machine);
  if (owner === null)
    return { owner, lines: [], ownership: null, hasMore: false, makes: { file: true, directory: true }, open: false };
  const { directoryIsThere, found, text } = lookAtKeys(machine.walk, owner);
  return {
    owner,
    lines: linesWith(text, key),
    ownership: found.type === 'file' ? { uid: found.uid, gid: found.gid, mode: found.mode } : null,
    hasMore: withoutAll(text, key) !== '',
    makes: madeByUs(owner, directoryIsThere, found.type === 'absent', text, user, machine),
    open: text !== '' && !text.endsWith('\n'),
  };
}

/**
 * Returns whether the agent creates the file, and whether it creates the directory. A file that contains only keys from
 * this operation counts as created by it.
 */
function madeByUs(
  owner: Owner,
  directoryIsThere: boolean,
  fileIsAbsent: boolean,
  text: string,
  user: string,
  machine: Machine,
): SeenKey['makes'] {
  if (fileIsAbsent) return { file: true, directory: !directoryIsThere };
  const declared = new Set(
    machine
      .resourcesOf('ssh-authorized-key')
      .map(({ body }) => body as Body)
      .filter((body) => body.user === user)
      .map(({ key }) => key),
  );
  const keys = onlyKeys(text);
  const file = keys !== null && keys.length > 0 && keys.every((key) => declared.has(key));
  return { file, directory: file && listDirectory(machine.walk, directoryOf(owner), 1)?.length === 1 };
}

/**
 * Edits the file's text, and writes the file if the text differs.
 * @param created whether the agent created the file and its directory, which are removed when the file contains no keys
 */
async function edit(
  resource: Declared,
  machine: Machine,
  change: (text: string) => string,
  created: SeenKey['makes'] | null = null,
): Promise<Outcome> {
  const { user } = resource.body;
  const owner = await ownerOf(user, machine);
  if (owner === null) throw new HostFailure(`there is no user ${user} in /etc/passwd`);
  const seen = lookAtKeys(machine.walk, owner);
  const text = change(seen.text);
  if (created !== null && text === '') removeKeyFile(owner, seen, created, machine);
  if (text === seen.text || (created?.file === true && text === '')) return {};
  await writeKeys(owner, seen, text, machine);
  return {};
}
