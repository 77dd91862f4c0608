import { type FieldChange, sshKeyType } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Machine, nothing, presenceDrift, withChanges } from '../provider/provider.ts';
import { insertLines, readable, removeLines, type TextLine } from '../text-edit/lines.ts';
import { editLines, type LinesBefore, type PlacedLine, placedLine, restoredPlaced } from '../text-edit/placed-lines.ts';
import { bitsLost, linesOf, lookAtText, nothingLeft, otherObject, type SeenText } from '../text-edit/text-file.ts';

const directory = '/etc/ssh';
const file = `${directory}/ssh_known_hosts`;

type Body = ResourceBodies['known-host'];
type Declared = ResolvedResource<'known-host'>;

export interface SeenKnownHost extends Omit<SeenText, 'content'> {
  /** The lines for the host that contain a key of the declared type. */
  lines: PlacedLine[];
  /** Whether the file exists and contains no line. */
  isEmpty: boolean;
  hasDirectory: boolean;
  /** Whether the file is missing, or contains only lines from known-host resources. */
  isOurs: boolean;
  /**
   * Names in a line whose first name is another host, but which also lists this host with a different key of the
   * declared type.
   */
  contradiction: string | null;
}

export type KnownHostBefore = LinesBefore;

/** A line with a key, as in sshd(8). */
interface HostLine {
  names: readonly string[];
  type: string;
  key: string;
  comment: string;
}

/** Parses a line. Returns null for a comment, a line with a marker such as `@revoked`, and a line with a hashed name. */
function parseHostLine(text: string): HostLine | null {
  const found = /^[ \t]*([^ \t#@|][^ \t]*)[ \t]+([^ \t]+)[ \t]+([^ \t]+)(?:[ \t]+(.*))?$/.exec(text);
  if (found === null) return null;
  const [, names = '', type = '', key = '', comment = ''] = found;
  return { names: names.split(','), type, key, comment: comment.trimEnd() };
}

const lineText = ({ names, type, key, comment }: HostLine): string =>
  `${names.join(',')} ${type} ${key}${comment === '' ? '' : ` ${comment}`}`;

/** Compares two names as ssh does, which ignores case. */
const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Reports whether a line belongs to the host: its first name matches, and its key has this type. */
function isLineOf({ name, key_type }: Body, text: string): boolean {
  const line = parseHostLine(text);
  return line !== null && line.type === key_type && isSame(line.names[0] as string, name);
}

const indexesOf = (body: Body, lines: readonly TextLine[]): number[] =>
  lines.flatMap(({ text }, index) => (isLineOf(body, text) ? [index] : []));

/** Returns the declared line. Keeps the comment of the current line, and its aliases if none are declared. */
function expectedLine({ name, aliases, key_type, key }: Body, current: HostLine | null): HostLine {
  const own = current?.names ?? [name];
  const lower = (names: readonly string[]) => [...new Set([name, ...names].map((each) => each.toLowerCase()))].sort();
  const declared = aliases == null ? own : [own[0] ?? name, ...aliases.filter((alias) => !isSame(alias, name))];
  const names = lower(own).join(',') === lower(declared).join(',') ? own : declared;
  return { names, type: key_type, key, comment: current?.comment ?? '' };
}

/** Chooses the line to keep: the first line with the declared key or, if no line has that key, the first line. */
const kept = <T extends Pick<HostLine, 'key'>>({ key }: Body, own: readonly T[]): T | null =>
  own.find((line) => line.key === key) ?? own[0] ?? null;

/**
 * Returns the file with exactly one line for the host: the declared line, in the position of the current one or at the
 * end.
 */
export function declaredLines(body: Body, lines: readonly TextLine[]): TextLine[] {
  const own = indexesOf(body, lines);
  if (body.ensure === 'absent') return removeLines(lines, new Set(own));
  const current = kept(
    body,
    own.map((index) => ({ ...(parseHostLine((lines[index] as TextLine).text) as HostLine), index })),
  );
  const text = lineText(expectedLine(body, current));
  if (current === null) return insertLines(lines, lines.length, [text]);
  const { index } = current;
  // A line that differs only in spaces stays unchanged.
  const after = lines.map((line, i) => (i === index && text !== lineText(current) ? { ...line, text } : line));
  return removeLines(after, new Set(own.filter((other) => other !== index)));
}

/**
 * Returns the file with the host's lines as they were before the agent's first change. All other lines stay unchanged.
 */
export const restoredLines = (body: Body, before: KnownHostBefore, lines: readonly TextLine[]): TextLine[] =>
  restoredPlaced(indexesOf(body, lines), before, lines);

function changesBetween(from: readonly HostLine[], to: readonly HostLine[]): FieldChange[] {
  const fields: [field: string, of: (lines: readonly HostLine[]) => string | null][] = [
    ['ensure', (lines) => (lines.length === 0 ? 'absent' : 'present')],
    ['aliases', ([first]) => first?.names.slice(1).join(',') || null],
    ['key', (lines) => [...new Set(lines.map(({ key }) => key))].join(', ') || null],
    ['comment', ([first]) => first?.comment || null],
    ['lines', (lines) => (from.length === 0 || to.length === 0 ? null : String(lines.length))],
  ];
  const shown = (text: string | null): string | null => (text === null ? null : readable(text).slice(0, 4096));
  return fields
    .map(([field, of]) => ({ field, from: shown(of(from)), to: shown(of(to)) }))
    .filter((change) => change.from !== change.to);
}

const parsed = (lines: readonly { text: string }[]): HostLine[] =>
  lines.map(({ text }) => parseHostLine(text)).filter((line) => line !== null);

/** Returns the resource with the path in its body, where the functions in text-edit expect it. */
const inFile = (resource: Declared) => ({ ...resource, body: { ...resource.body, path: file } });

/** An entry in the system-wide SSH known_hosts file. The provider preserves all other lines. */
export const knownHost = defineProvider<'known-host', SeenKnownHost, KnownHostBefore>({
  type: 'known-host',
  fields: { name: 'text', key_type: 'text', key: 'text', aliases: 'list?', ensure: 'text?' },
  // Several hosts share the file, so no resource owns the path.
  watched: () => [file],

  check({ body: { name, aliases, key_type, key } }) {
    // ssh trusts each line of this file, so a value must not be able to add another name or line.
    for (const each of [name, ...(aliases ?? [])])
      if (!/^([\w:][\w.:%-]*|\[[\w:][\w.:%-]*\]:\d{1,5})$/.test(each))
        throw new HostFailure(`${JSON.stringify(each)} must be a host name, an address, or [host]:port`);
    const type = sshKeyType(key);
    if (type === null) throw new HostFailure('the key must be the base64 text of an SSH public key');
    if (type !== key_type)
      throw new HostFailure(`the key is of type ${JSON.stringify(type)}; declare that as \`key_type\``);
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),

  diff(resource, seen, { purpose, willBeThere }): Difference {
    const { body } = resource;
    const isAbsent = body.ensure === 'absent';
    const other = otherObject(inFile(resource), seen, { purpose });
    if (other !== null) return other;
    const own = parsed(seen.lines);
    const current = kept(body, own);
    const changes = changesBetween(
      current === null ? [] : [current, ...own.filter((line) => line !== current)],
      isAbsent ? [] : [expectedLine(body, current)],
    );
    const message =
      seen.contradiction === null || isAbsent
        ? undefined
        : `ssh also accepts another ${body.key_type} key for ${body.name}, from the line of ${seen.contradiction} in ${file}; remove the name there`;
    if (changes.length > 0) changes.push(...bitsLost(seen));
    const isMissing = !seen.hasDirectory && purpose !== 'drift' && !willBeThere(directory);
    const awaits = [isMissing ? { kind: 'programs' as const, message: missingDirectory } : null];
    return withChanges(isAbsent ? 'remove' : current === null ? 'create' : 'update', changes, { awaits, message });
  },

  remember: async (_resource, { lines, isOurs }, _difference, before) =>
    before ?? (lines.length === 0 ? { was: 'absent', made: isOurs } : { was: 'present', lines }),

  async apply({ body }, _seen, _difference, machine) {
    await editLines(file, machine, (lines) => declaredLines(body, lines), { missingDirectory });
    return {};
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),

  diffRemoval(resource, before, seen) {
    const gone = seen.type === 'absent' ? null : nothingLeft(inFile(resource), seen, before.was === 'present');
    if (gone !== null) return gone;
    if (before.was === 'absent' && before.made && seen.isEmpty)
      return { ...presenceDrift(), message: `removes ${file}, which is empty` };
    const changes = changesBetween(parsed(seen.lines), before.was === 'absent' ? [] : parsed(before.lines));
    if (changes.length === 0)
      return nothing(before.was === 'absent' ? 'already removed' : 'already in its original state');
    return {
      action: 'remove',
      changes: [...changes, ...bitsLost(seen)],
      diff: null,
      ...(before.was === 'absent' ? {} : { message: 'restores the original state' }),
    };
  },

  async remove({ body }, before, _seen, _difference, machine) {
    const removesEmpty = before.was === 'absent' && before.made;
    await editLines(file, machine, (lines) => restoredLines(body, before, lines), { removesEmpty, missingDirectory });
    return {};
  },
});

const missingDirectory = `there is no directory ${directory}; install OpenSSH's client, and declare its package before this resource`;

function look(resource: Declared, machine: Machine): SeenKnownHost {
  const { content, ...seen } = lookAtText(inFile(resource), machine);
  const lines = linesOf({ ...seen, content });
  const { body } = resource;
  const declared = machine
    .resourcesOf('known-host')
    .map((other) => other.body as Body)
    .filter(({ ensure }) => ensure !== 'absent');
  const own = new Set(indexesOf(body, lines));
  const others = lines.filter((_, index) => !own.has(index)).map(({ text }) => parseHostLine(text));
  const contradicting = others.find(
    (line) =>
      line !== null &&
      line.type === body.key_type &&
      line.key !== body.key &&
      line.names.some((name) => isSame(name, body.name)),
  );
  return {
    ...seen,
    lines: [...own].map((index) => placedLine(lines, index)),
    isEmpty: seen.type === 'file' && lines.length === 0,
    hasDirectory: seen.type !== 'absent' || inspect(machine.walk, directory, false).type !== 'absent',
    isOurs:
      seen.type === 'absent' ||
      (lines.length > 0 && lines.every(({ text }) => declared.some((each) => isLineOf(each, text)))),
    contradiction: contradicting == null ? null : readable(contradicting.names.join(',')).slice(0, 256),
  };
}
