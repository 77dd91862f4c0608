import { isPythonArchive, pythonName } from '@muster/protocol/python-version';
import { HostFailure } from '../../host/failure.ts';
import { inspect, type Ownership } from '../../host/files/inspect.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { type Marker, parseMarker } from './markers.ts';
import { parseSpecifiers, type Specifier } from './version-specifiers.ts';

/**
 * Parses requirements files of pip. Of their options, only hashes are accepted: the others change where packages come
 * from, or name files and URLs whose content no plan shows.
 */

export interface Requirement {
  /** Name in the form in which names are compared. */
  name: string;
  /** Extras in the form in which they are compared. */
  extras: string[];
  specifiers: Specifier[];
  marker: Marker | null;
  /** The requirement for messages, such as `tool==2.0`. */
  shown: string;
  /** The requirement as pip reads it, in one line. */
  line: string;
  hasHash: boolean;
}

export interface Requirements {
  requirements: Requirement[];
  /** Whether the file has the option --require-hashes. */
  requiresHashes: boolean;
}

export type RequirementsFile = Requirements & Ownership;

/** Maximum size of the file, in bytes. A hash has 80 bytes, and a package may have 100 of them. */
const maxFile = 2 * 1024 * 1024;
const maxRequirements = 2000;
/** Maximum length of a requirement without its hashes, in characters. */
const maxLine = 4000;

/**
 * Reads and parses a requirements file.
 * @returns null if it does not exist
 * @throws HostFailure if it is not a regular file, or has a line that is not accepted
 */
export function readRequirements(walk: PathWalk, path: string): RequirementsFile | null {
  const found = inspect(walk, path, true);
  if (found.type === 'absent') return null;
  if (found.type !== 'file')
    throw new HostFailure(`${path} is a ${found.type === 'other' ? found.kind : found.type}, not a requirements file`);
  const bytes = found.content?.bytes ?? null;
  if (bytes === null || bytes.length > maxFile)
    throw new HostFailure(`${path} is larger than a requirements file of ${maxFile / 1024 / 1024} MiB`);
  const { uid, gid, mode } = found;
  return { ...parseRequirements(bytes.toString('utf8'), path), uid, gid, mode };
}

/**
 * @param path path of the file, for messages
 * @throws HostFailure that names the first line that is not accepted. Lines may contain passwords, so it does not show
 *   them
 */
export function parseRequirements(text: string, path: string): Requirements {
  const result: Requirements = { requirements: [], requiresHashes: false };
  for (const { content, number } of logicalLines(text)) {
    const fault = (why: string) => new HostFailure(`${path}, line ${number}: ${why}`);
    if (content === '--require-hashes') {
      result.requiresHashes = true;
      continue;
    }
    const option = optionOf(content);
    if (option !== null) throw fault(optionFault(option));
    if (result.requirements.length === maxRequirements) throw fault(`has more than ${maxRequirements} requirements`);
    const requirement = parseRequirement(content);
    if (typeof requirement === 'string') throw fault(requirement);
    result.requirements.push(requirement);
  }
  return result;
}

/** Joins lines that end with a backslash, and removes comments and empty lines. */
function* logicalLines(text: string): Generator<{ content: string; number: number }> {
  let pending: { content: string; number: number } | null = null;
  let number = 0;
  for (const raw of text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)) {
    number++;
    if (raw === '' && pending === null) continue;
    const isComment = /^\s*#/.test(raw);
    const current: { content: string; number: number } = pending ?? { content: '', number };
    pending = null;
    if (raw.endsWith('\\') && !isComment) pending = { ...current, content: `${current.content}${raw.slice(0, -1)}` };
    else yield* withoutComment({ ...current, content: `${current.content}${isComment ? ' ' : ''}${raw}` });
  }
  if (pending !== null) yield* withoutComment(pending);
}

function* withoutComment(line: { content: string; number: number }): Generator<{ content: string; number: number }> {
  const content = line.content.replace(/(^|\s)#.*$/s, '').trim();
  if (content !== '') yield { ...line, content };
}

/** Returns the option at the start of a text, without its value, which may be a password; null if there is none. */
const optionOf = (text: string): string | null => /^(?:--[A-Za-z][A-Za-z-]*|-[A-Za-z])/.exec(text)?.[0] ?? null;

function optionFault(option: string): string {
  if (['-i', '--index-url', '--pypi-url'].includes(option)) return `${option} is refused: declare \`index_url\``;
  if (['-r', '--requirement', '-c', '--constraint'].includes(option))
    return `${option} is refused: put the lines of the other file into this one, or declare it as a resource`;
  if (['-e', '--editable'].includes(option)) return `${option} is refused: only packages of the index can be installed`;
  return `the option ${option} is refused`;
}

const placeFault = 'URLs and paths are refused: only packages of the index can be installed';
const namePattern = /^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*/;
const extraPattern = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const hashPattern = /^--hash[= ](?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/;

/** @returns the reason if the line is not accepted */
export function parseRequirement(content: string): Requirement | string {
  // Each space is one character, so that the patterns take linear time.
  const flat = content.replace(/\s+/g, ' ').trim();
  const [head = '', ...options] = flat.split(/ (?=--?[A-Za-z])/);
  if (head.length > maxLine) return `has more than ${maxLine} characters`;
  const other = options.find((option) => !hashPattern.test(option.trim()));
  if (other !== undefined)
    return other.startsWith('--hash')
      ? '--hash must be sha256, sha384, or sha512 with a hash in hexadecimal'
      : `the option ${optionOf(other)} is refused`;
  if (/^(?:[A-Za-z][\w+.-]*:\/\/|\.{0,2}\/|file:|[^;]*@)/.test(head)) return placeFault;
  const [, written = ''] = namePattern.exec(head) ?? [];
  const [, extras = '', rest = ''] =
    /^(?:\[([A-Za-z0-9._,\s-]*)\]\s*)?(.*)$/s.exec(head.slice(namePattern.exec(head)?.[0].length ?? 0)) ?? [];
  const [constraints = '', ...markers] = rest.split(';');
  const specifiers = parseSpecifiers(constraints.trim().replace(/^\((.*)\)$/s, '$1'));
  const form = 'is not a requirement such as name>=1.2,<2';
  if (written === '' || written.length > 128 || specifiers === null) return form;
  const markerText = markers.join(';').trim();
  const marker = markers.length === 0 ? null : parseMarker(markerText);
  if (markers.length > 0 && marker === null) return 'has a marker after ";" that is not understood';
  const name = pythonName(written);
  if (name === 'pip') return 'pip itself cannot be declared';
  const names = extras
    .split(',')
    .map((extra) => extra.trim())
    .filter((extra) => extra !== '');
  if (!names.every((extra) => extraPattern.test(extra))) return form;
  // Old releases of pip do not find an extra by its normalized name.
  const what = `${written}${names.length === 0 ? '' : `[${names.join(',')}]`}`;
  const versions = specifiers.map(({ operator, version }) => `${operator}${version}`).join(',');
  // pip would look for a file with this name.
  if (isPythonArchive(`${written}${versions}`)) return placeFault;
  const hashes = options.map((option) => ` ${option.trim().replace(/^--hash /, '--hash=')}`).join('');
  return {
    ...{ name, extras: names.map(pythonName), specifiers, marker, hasHash: options.length > 0 },
    shown: `${what}${versions}`,
    line: `${what}${versions}${marker === null ? '' : ` ; ${markerText}`}${hashes}`,
  };
}
