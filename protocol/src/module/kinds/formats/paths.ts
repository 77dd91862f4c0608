import { allOf, byPattern, type Check, notEmpty, oneLine } from './text.ts';

export const mode: Check = byPattern(/^[0-7]{3,4}$/, 'must be 3 or 4 octal digits in quotes, such as "0644"');

const symbolicClause = /^([ugoa]+)=([rwxst]*)$/;
const classes = {
  u: { shift: 6, s: 0o4000, t: 0 },
  g: { shift: 3, s: 0o2000, t: 0 },
  o: { shift: 0, s: 0, t: 0o1000 },
};

/** Converts symbolic permissions that set all classes, such as `u=rw,go=r`, to octal digits; null for any other text. */
export function octalMode(text: string): string | null {
  let mode = 0;
  const given = new Set<string>();
  for (const clause of text.split(',')) {
    const [, who, what = ''] = symbolicClause.exec(clause) ?? [];
    if (who === undefined) return null;
    for (const name of who.includes('a') ? (['u', 'g', 'o'] as const) : (who as Iterable<string>)) {
      if (given.has(name)) return null;
      given.add(name);
      const { shift, s, t } = classes[name as keyof typeof classes];
      const bits = (what.includes('r') ? 4 : 0) + (what.includes('w') ? 2 : 0) + (what.includes('x') ? 1 : 0);
      mode |= (bits << shift) | (what.includes('s') ? s : 0) | (what.includes('t') ? t : 0);
    }
  }
  return given.size === 3 ? mode.toString(8).padStart(4, '0') : null;
}

/**
 * The permissions of a file. A change that depends on the current permissions, such as `g+w`, is not a desired state.
 */
export const fileMode: Check = (text) =>
  mode(text) === undefined || octalMode(text) !== null
    ? undefined
    : 'must be 3 or 4 octal digits in quotes, such as "0644", or set each class once, such as u=rw,go=r';

/**
 * An absolute POSIX path in canonical form. Two spellings of one path would be two identities, so a conflict
 * between them would not be detected.
 */
const unixPath: Check = (path) => {
  if (!path.startsWith('/')) return 'must be an absolute path, starting with "/"';
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (path.length > 4095) return 'is longer than 4095 characters';
  if (path === '/') return undefined;
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..' || segment === '.') return `must not contain "${segment}": write the resulting path`;
    if (segment === '') return 'must not contain "//" or end with "/"';
  }
  return undefined;
};

/** The path of a directory. It may have one trailing slash, which `withoutClosingSlash` removes. */
export const unixDirectory: Check = (path) => unixPath(withoutClosingSlash(path));

export const withoutClosingSlash = (path: string): string =>
  path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;

/** The path of a file, which is never "/". */
export const unixFile: Check = (path) => (path === '/' ? 'must be a file, not "/"' : unixPath(path));

/** A name, or a path below a directory, in which `*` and `?` stand for characters of one component. */
export const filePattern: Check = (pattern) => {
  if (pattern.length > 1024 || /[\x00-\x1f\x7f[\]{}\\]/.test(pattern))
    return 'must be at most 1024 characters, without brackets, "\\", and control characters; only * and ? are special';
  if (pattern.includes('**')) return 'must not contain "**": a name without "/" matches at any depth';
  const components = pattern.replace(/^\//, '').split('/');
  if (components.some((one) => one.length > 255)) return 'must not have a name of more than 255 characters';
  const isPlain = components.every((one) => one !== '' && one !== '.' && one !== '..');
  return isPlain ? undefined : 'must be a name, or a path below the directory, such as *.key or /tls/*.key';
};

export const shells: readonly string[] = ['sh', 'bash', 'pwsh', 'powershell', 'cmd'];

/** A shell that agents find by its name, or the absolute path of any other interpreter. */
export const interpreter: Check = (program) => {
  if (shells.includes(program)) return undefined;
  if (!program.startsWith('/')) return `must be ${shells.join(', ')}, or an absolute path such as /usr/bin/python3`;
  return unixFile(program);
};

export const windowsPath: Check = (path) => {
  if (!/^[A-Za-z]:[\\/]/.test(path)) return 'must be an absolute path with a drive letter, such as C:\\ProgramData\\x';
  const rest = path.slice(3);
  if (/[\x00-\x1f<>:"|?*]/.test(rest)) return 'must not contain control characters or any of < > : " | ? *';
  if (path.length > 32_000) return 'is longer than 32000 characters';
  if (rest === '') return undefined;
  for (const segment of rest.split(/[\\/]/)) {
    if (segment === '..' || segment === '.') return `must not contain "${segment}": write the resulting path`;
    if (segment === '') return 'must not have an empty part or end with a separator';
  }
  return undefined;
};

/** Converts a path to the form in which identities are compared. Windows accepts several spellings of one path. */
export const canonicalWindowsPath = (path: string): string => path.replaceAll('/', '\\').toLowerCase();

/** The agent replaces `%` in the command with the path of the new content. */
export const validateCommand: Check = allOf(notEmpty, oneLine, (text) =>
  text.includes('%') ? undefined : 'must contain "%", which represents the file with the new content',
);
