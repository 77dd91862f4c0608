import { identify, kinds } from '../kinds.ts';
import type { UnfilledBody, UnfilledResource } from '../secrets.ts';
import type { ModuleFiles } from './module-file.ts';
import { filesBelow, sourceFault } from './source-files.ts';

type Sourced = Pick<UnfilledResource, 'type' | 'id' | 'key' | 'identity' | 'body' | 'source'>;

/**
 * Adds the content that `source` refers to. A directory becomes a resource for itself, and one for each directory and
 * file in it, so that drift, triggers, and removal treat each of these as if it were declared separately.
 * @returns undefined after a fault
 */
export function withSource<T extends Sourced>(
  instance: T,
  files: ModuleFiles = new Map(),
  fault: (message: string) => void,
): T[] | undefined {
  const { type, body } = instance;
  const { sourced } = kinds[type];
  if (sourced === null || typeof body.source !== 'string' || body.ensure === 'absent') return [instance];
  const wrong = sourceFault(sourced, body.source, files);
  if (wrong !== undefined) {
    fault(wrong);
    return undefined;
  }
  if (sourced === 'directory' && hasSpecialBit(body.file_mode)) {
    fault('`file_mode` must not set a set-ID bit or the sticky bit');
    return undefined;
  }
  if (sourced === 'directory') return [instance, ...entriesOf(instance, body.source, files)];
  const file = files.get(body.source);
  if (file === undefined) return undefined;
  const hasMode = Object.hasOwn(kinds[type].optional, 'mode');
  const mode = hasMode && file.executable && body.mode === undefined ? { mode: executableMode } : {};
  const { sha256, size } = file;
  return [{ ...instance, body: { ...body, ...mode }, source: { sha256, size } }];
}

const executableMode = '0755';
const otherMode = '0644';

const hasSpecialBit = (mode: unknown): boolean => typeof mode === 'string' && (Number.parseInt(mode, 8) & 0o7000) !== 0;

/** Lets everyone who may read a file also execute it, for each digit of `file_mode`. */
const madeExecutable = (mode: string): string => {
  const bits = Number.parseInt(mode, 8);
  return (bits | ((bits & 0o444) >> 2)).toString(8).padStart(4, '0');
};

/** Returns a resource for each directory and file below the directory, parents first. */
function entriesOf<T extends Sourced>(parent: T, source: string, files: ModuleFiles): T[] {
  const { owner, group, mode, file_mode: fileMode, path: root } = parent.body;
  const modeOf = { plain: otherMode, executable: executableMode };
  if (typeof fileMode === 'string') Object.assign(modeOf, { plain: fileMode, executable: madeExecutable(fileMode) });
  const owned = { ...(owner === undefined ? {} : { owner }), ...(group === undefined ? {} : { group }) };
  const made = new Set<string>();
  const entries: T[] = [];
  const add = (type: 'directory-unix' | 'file-unix', path: string, body: UnfilledBody, more: Partial<Sourced> = {}) => {
    const placed: UnfilledBody = { path: `${root === '/' ? '' : root}/${path}`, ...body, ...owned };
    const id = parent.id === null ? null : `${parent.id}[${path}]`;
    entries.push({ ...parent, ...identify(type, placed), type, id, body: placed, ...more });
  };
  for (const [path, { sha256, size, executable, path: name }] of filesBelow(source, files)) {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const directory = path.slice(0, end);
      if (made.has(directory)) continue;
      made.add(directory);
      add('directory-unix', directory, mode === undefined ? {} : { mode });
    }
    const body = { source: name, mode: executable ? modeOf.executable : modeOf.plain };
    add('file-unix', path, body, { source: { sha256, size } });
  }
  return entries;
}
