import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Contents of a `.deb`. The files are owned by root, and the package is byte-identical for the same contents. */

export interface DebianPackage {
  /** Fields of `control`, in this order. `Installed-Size` is computed. */
  control: Readonly<Record<string, string>>;
  /** Installed files, by absolute path. */
  files: Readonly<Record<string, PackagedFile>>;
  /** Absolute paths of configuration files, in which an upgrade preserves the administrator's changes. */
  conffiles: readonly string[];
  scripts: Readonly<Record<string, string>>;
}

/** The content of an installed file, or the path of a file to copy. */
export type PackagedFile = { content: string | Buffer; mode?: number } | { copy: string; mode?: number };

/** `quick` is gzip at its lowest level, for temporary packages. */
export type Compression = 'xz' | 'gzip' | 'quick' | 'none';

export function canBuild(): boolean {
  try {
    execFileSync('dpkg-deb', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes a package.
 * @param epoch modification time of all files in the package, in Unix seconds
 * @throws Error with the output of dpkg-deb
 */
export function writePackage(contents: DebianPackage, path: string, epoch: number, compression: Compression): void {
  const root = mkdtempSync(join(tmpdir(), 'muster-deb-'));
  try {
    chmodSync(root, 0o755);
    const sums: string[] = [];
    let bytes = 0;
    for (const [path, file] of Object.entries(contents.files).sort(byName)) {
      const target = join(root, path);
      writePackaged(target, file);
      bytes += statSync(target).size;
      if (!contents.conffiles.includes(path)) sums.push(`${hash('md5', readFileSync(target))}  ${path.slice(1)}\n`);
    }
    const control: Record<string, string> = { ...contents.control, 'Installed-Size': String(Math.ceil(bytes / 1024)) };
    const { Description = '', ...fields } = control;
    const lines = [...Object.entries(fields), ['Description', Description]].map(
      ([name, value]) => `${name}: ${value}\n`,
    );
    writePackaged(join(root, 'DEBIAN/control'), { content: lines.join('') });
    writePackaged(join(root, 'DEBIAN/md5sums'), { content: sums.join('') });
    if (contents.conffiles.length > 0)
      writePackaged(join(root, 'DEBIAN/conffiles'), {
        content: contents.conffiles.map((path) => `${path}\n`).join(''),
      });
    for (const [name, text] of Object.entries(contents.scripts))
      writePackaged(join(root, 'DEBIAN', name), { content: text, mode: 0o755 });
    setTimes(root, epoch);
    execFileSync(
      'dpkg-deb',
      [
        '--root-owner-group',
        ...(compression === 'quick' ? ['-Zgzip', '-z1'] : [`-Z${compression}`]),
        '--build',
        root,
        path,
      ],
      {
        env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);

/** Sets the mode explicitly, so that it does not depend on the builder's umask. */
function writePackaged(target: string, file: PackagedFile): void {
  makeFolder(dirname(target));
  if ('content' in file) writeFileSync(target, file.content);
  else copyFileSync(file.copy, target);
  chmodSync(target, file.mode ?? 0o644);
}

function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  makeFolder(dirname(path));
  mkdirSync(path);
  chmodSync(path, 0o755);
}

function setTimes(path: string, epoch: number): void {
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) setTimes(join(path, name), epoch);
  lutimesSync(path, epoch, epoch);
}
