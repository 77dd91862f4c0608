import { maxPythonVersion, pythonName, pythonVersion } from '../../python-version.ts';

/**
 * Checks a field's format. Returns the error, worded to complete a sentence about the field, or undefined.
 * Checks run on upload, if the text contains no expression, and again after resolution, because an expression may yield
 * any value.
 */
export type Check = (text: string) => string | undefined;

export const byPattern =
  (pattern: RegExp, fault: string): Check =>
  (text) =>
    pattern.test(text) ? undefined : fault;

/** Returns a check that runs all checks in order and returns the first error. */
export const allOf =
  (...checks: Check[]): Check =>
  (text) => {
    for (const check of checks) {
      const fault = check(text);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };

export const maxLength =
  (characters: number): Check =>
  (text) =>
    text.length > characters ? `is longer than ${characters} characters` : undefined;

export const notEmpty: Check = (text) => (text === '' ? 'must not be empty' : undefined);

/** For text that becomes one line of a system file, in which a line break would add another line. */
export const oneLine: Check = (text) => (/[\n\r\0]/.test(text) ? 'must be one line, without line breaks' : undefined);

export const noNul: Check = (text) => (text.includes('\0') ? 'must not contain a NUL character' : undefined);

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

/** A directory may have one trailing slash, which `withoutClosingSlash` removes. */
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

export const unixAccount: Check = byPattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,254}\$?$/,
  'must be a name of letters, digits, "_", ".", "@" and "-", not starting with "-"',
);

/** A crypt(5) hash that specifies its method, or a character that no password matches. */
export const passwordHash: Check = byPattern(
  /^(\$[a-z0-9]{1,8}\$[^\s:!*\\\x00-\x1f\x7f]{8,400}|[!*])$/,
  'must be a hash of the password, such as "$y$…" from mkpasswd, or "!" for no password; a plain password is refused',
);

/** A field in /etc/passwd. */
export const accountComment: Check = allOf(
  oneLine,
  maxLength(512),
  byPattern(/^[^:\x00-\x1f\x7f]*$/, 'must not contain ":" or control characters'),
);

export const expiryDay: Check = (text) => {
  const fault = 'must be a day, such as "2030-01-31", or "never"';
  if (text === 'never') return undefined;
  if (!/^(19[7-9]|2\d\d)\d-\d\d-\d\d$/.test(text)) return fault;
  // `Date` converts a day that does not exist, such as June 31, to a day in the next month.
  const day = new Date(`${text}T00:00:00Z`);
  return Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text ? fault : undefined;
};

export const windowsAccount: Check = allOf(
  notEmpty,
  maxLength(256),
  byPattern(
    /^[^\x00-\x1f"/[\]:;|=,+*?<>]+$/,
    'must not contain control characters or any of " / [ ] : ; | = , + * ? < >',
  ),
);

/** A name cannot start with "-", which apt would read as an option, or end with "-", which means "remove" to apt. */
export const aptPackage: Check = byPattern(
  /^[a-z0-9][a-z0-9+.-]{0,126}[a-z0-9+.](:[a-z0-9][a-z0-9-]*)?$/,
  'must be a package name: lower-case letters, digits, "+", "-" and ".", two or more, optionally with ":arch"; put the version into `version`',
);

export const packageName: Check = byPattern(
  /^[A-Za-z0-9@_][^\s\x00-\x1f\x7f]{0,255}$/,
  'must be a package name without spaces, not starting with "-"',
);

/** Any other value could be read by dnf as a group, a file, a pattern, or a condition. */
export const dnfPackage: Check = byPattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,255}$/,
  'must be the name of one package: letters, digits, "_", ".", "+", and "-"; put the version into `version`',
);

/** A version for package managers whose providers support neither patterns nor bounds. */
export const packageVersion: Check = byPattern(
  /^[A-Za-z0-9_][^\s\x00-\x1f\x7f*]{0,255}$/,
  'must be "latest" or an exact version, without spaces, "*" or ">=": omit it for any version',
);

/** A version, a pattern in which `*` matches any characters, or a lower bound. */
export const packageVersionRange: Check = byPattern(
  /^(\*|[A-Za-z0-9_][A-Za-z0-9_.+~^:*-]{0,255}|>= ?(?!latest$)[A-Za-z0-9_][A-Za-z0-9_.+~^:-]{0,255})$/,
  'must be "latest", a version, a pattern such as "20.*", a lower bound such as ">=20.1", or "*" for any version',
);

/** npm would read other names as options, directories, archives, or repositories. */
export const npmPackage: Check = allOf(
  maxLength(214),
  byPattern(
    /^(@[A-Za-z0-9][A-Za-z0-9._~-]*\/)?[A-Za-z0-9][A-Za-z0-9._~-]*$/,
    'must be the name of a package in the registry, such as typescript or @angular/cli; put the version into `version`',
  ),
  (name) =>
    /\.(tgz|tar|tar\.gz)$/i.test(name) ? 'must not end with the suffix of an archive, such as ".tgz"' : undefined,
);

const npmNumber = '(?:0|[1-9]\\d{0,14})';
const npmEnd = '[xX*](?:\\.[xX*])?';
/**
 * A version, or a part of one, in which no number follows a wildcard. The capture groups are the parts after "-" and
 * "+".
 */
const npmPartial = `v?(?:[xX*](?:\\.${npmEnd})?|${npmNumber}(?:\\.(?:${npmEnd}|${npmNumber}(?:\\.(?:[xX*]|${npmNumber}(?:-([0-9A-Za-z.-]+))?(?:\\+([0-9A-Za-z.-]+))?))?))?)`;

/** Returns a function that reports whether a text is an operator and a version. */
const npmPart = (operator: string): ((text: string) => boolean) => {
  const pattern = new RegExp(`^${operator}${npmPartial}$`);
  return (text) => {
    const match = pattern.exec(text);
    const [, before = '0', build = '0'] = match ?? [];
    return (
      match !== null &&
      before.split('.').every((id) => id !== '' && !/^0\d+$/.test(id)) &&
      !build.split('.').includes('')
    );
  };
};
const isNpmVersion = npmPart('');
const isNpmComparator = npmPart('(?:\\^|~|[<>]=?|=)?');

/** The parts are split, because nested patterns could take very long for hostile text. */
function isNpmRange(text: string): boolean {
  const ends = text.split(' - ');
  return ends.length === 2 ? ends.every(isNpmVersion) : text.split(' ').every(isNpmComparator);
}

/** A range in the syntax of npm. Tags such as `latest` are not versions, because they change without a plan. */
export const npmVersion: Check = allOf(maxLength(256), (text) =>
  text.split(/ ?\|\| ?/).every(isNpmRange)
    ? undefined
    : 'must be a version, such as 5.4.2, or a range, such as ^5.4 or ">=5 <7"; omit it for any version',
);

/** pip would read other names as options, files, or URLs. */
export const pipPackage: Check = (name) => {
  if (name.includes('['))
    return 'must not have extras in brackets: declare each package that the extra needs as a resource';
  if (name.length > 128 || !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) || /[._-]$/.test(name))
    return 'must be the name of a package in the index, such as requests; put the version into `version`';
  if (/\.(whl|zip|tgz|tbz|txz|tlz|tar|tar\.(gz|bz2|xz|lz|lzma))$/i.test(name))
    return 'must not end with the suffix of an archive, such as ".whl"';
  return pythonName(name) === 'pip' ? 'must not be pip, which is part of every virtual environment' : undefined;
};

/** An exact version of a Python package. */
export const pipVersion: Check = (text) =>
  pythonVersion(text) === null
    ? `must be one version with up to ${maxPythonVersion} characters, such as 2.31.0; omit it for any version`
    : undefined;

/**
 * The URL of a Python package index. pip reads it from a file, in which it would expand `${NAME}` and remove quotes,
 * and ignores servers that it cannot authenticate.
 */
export const pipIndex: Check = (text) => {
  const fault = httpUrl(text);
  if (fault !== undefined) return fault.replace('app.tar.gz', 'simple/');
  if (text.includes('?')) return 'must not contain "?", because pip appends the name of the package to the URL';
  if (/["'`\\$]/.test(text)) return 'must not contain quotes, "$" or a backslash: encode them, such as "%24"';
  if (text.startsWith('https://')) return undefined;
  const host = URL.parse(text)?.hostname ?? '';
  return host === 'localhost' || /^127\.\d+\.\d+\.\d+$/.test(host)
    ? undefined
    : 'must begin with https://, unless the server is on this machine: pip refuses other servers';
};

const unitNameRule = 'must be a unit name of letters, digits and : _ . \\ @ -';

/** Suffixes of other systemd unit types. */
const otherUnit = /\.(socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

export const systemdUnit: Check = (name) => {
  if (name.endsWith('.service'))
    return `must not end with ".service": write ${name.slice(0, -8) || 'the name before it'}`;
  const [, other] = otherUnit.exec(name) ?? [];
  if (other !== undefined)
    return `must be the name of a service: service-systemd manages .service units; declare .${other} units with unit-systemd`;
  return /^[A-Za-z0-9_][A-Za-z0-9:_.\\@-]{0,239}$/.test(name) ? undefined : unitNameRule;
};

/** A complete unit name. systemd creates devices and scopes itself, so unit files for them have no effect. */
export const systemdUnitFile: Check = allOf(
  byPattern(
    /\.(service|socket|mount|automount|swap|target|path|timer|slice)$/,
    'must end with the type of the unit: .service, .timer, .socket, .path, .mount, .automount, .swap, .target, or .slice',
  ),
  (name) =>
    /^[^@]*@\./.test(name)
      ? 'must not be a template: name an instance of it, or declare the file of the template with file-unix'
      : undefined,
  byPattern(/^[A-Za-z0-9_-][A-Za-z0-9:_.\\@-]{0,239}$/, unitNameRule),
);

export const unitSetting: Check = byPattern(
  /^[A-Z][A-Za-z0-9-]{0,63}\.[A-Z][A-Za-z0-9-]{0,127}$/,
  'must be a section and a key joined by a dot, such as Timer.OnCalendar',
);

export const unitSettingValue: Check = (text) => {
  if (/[\0\r]/.test(text)) return 'must not contain NUL characters or carriage returns';
  return text.split('\n').some((line) => line.trimEnd().endsWith('\\'))
    ? 'must not have a line that ends in a backslash, which would join the next line'
    : undefined;
};

/** An http or https URL, without a fragment, because servers do not receive fragments. */
export const httpUrl: Check = (text) => {
  const url = text.length <= 2000 && /^https?:\/\/[^\s\x00-\x1f\x7f]+$/.test(text) ? URL.parse(text) : null;
  if (url === null)
    return 'must be an http or https URL with up to 2000 characters, such as https://example.org/app.tar.gz';
  return text.includes('#') ? 'must not contain "#"' : undefined;
};

export const httpsUrl: Check = (text) =>
  httpUrl(text) ??
  (text.startsWith('https://')
    ? undefined
    : 'must begin with https://, because only TLS protects it from being changed in transit');

/** The URL of a package index. Every user can see it in the arguments or the environment of the package manager. */
export const packageIndex: Check = (text) => {
  const fault = httpUrl(text);
  if (fault !== undefined) return fault;
  const url = URL.parse(text);
  return url?.username === '' && url.password === ''
    ? undefined
    : 'must not contain a user or password: put them into the settings of the package manager';
};

export const sha256: Check = byPattern(/^[0-9A-Fa-f]{64}$/, 'must be a SHA-256: 64 hexadecimal digits');

/**
 * A URL for git whose protocol authenticates the server. It must not contain a password, because other users could
 * see it.
 */
export const gitUrl: Check = (text) => {
  const fault =
    'must be https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or an absolute path: other protocols do not authenticate the server';
  if (text.length > 2000 || /[\s\x00-\x1f\x7f]/.test(text)) return fault;
  if (text.startsWith('/')) return unixFile(text);
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?!\/\/)[^-].*$/.test(text)) return undefined;
  const url = /^(https|ssh):\/\/[^-/]/.test(text) ? URL.parse(text) : null;
  if (url === null) return fault;
  return url.password === '' ? undefined : 'must not contain a password: use `key`, or a credential helper of git';
};

export const gitRevision: Check = (text) =>
  /^[A-Za-z0-9_][A-Za-z0-9_./+@-]{0,249}$/.test(text) && !/\.\.|\/\/|@\{|\.lock(\/|$)|[./]$/.test(text)
    ? undefined
    : 'must be the name of a tag or a branch, or the 40 digits of a commit';

export const privateKey: Check = (text) =>
  /^-----BEGIN [A-Z ]*PRIVATE KEY-----\n/.test(text) ? undefined : 'must be a private key that begins with -----BEGIN';

/** A value of After= and Requires=: a unit name, with or without its suffix. */
export const unitReference: Check = byPattern(/^[A-Za-z0-9_-][A-Za-z0-9:_.\\@-]{0,254}$/, unitNameRule);

export const plainName: Check = byPattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,239}$/,
  'must be a name of letters, digits, "_", "." and "-"',
);

/** Refuses the ".service" suffix of systemd units, which OpenRC services do not have. */
export const openrcService: Check = (name) =>
  name.endsWith('.service') ? 'must be the name of an OpenRC service, without ".service"' : plainName(name);

export const windowsService: Check = byPattern(
  /^[^\x00-\x1f/\\]{1,256}$/,
  'must be 1 to 256 characters, without "/", "\\" and control characters',
);

/** `~` is the home directory of the service's user. With a leading `-`, systemd ignores a missing directory. */
export const systemdWorkingDirectory: Check = (path) =>
  path === '~' ? undefined : unixDirectory(path.startsWith('-') ? path.slice(1) : path);

export const environmentName: Check = byPattern(
  /^[A-Za-z_][A-Za-z0-9_]*$/,
  'must be the name of an environment variable: letters, digits and "_", not starting with a digit',
);

/** cron ignores files in /etc/cron.d whose name contains a dot. */
export const cronName: Check = byPattern(/^[A-Za-z0-9_-]{1,128}$/, 'must be a name of letters, digits, "_" and "-"');

export const cronSchedule: Check = (text) =>
  /^@(reboot|yearly|annually|monthly|weekly|daily|midnight|hourly)$/.test(text) ||
  /^[0-9A-Za-z*/,~-]+( +[0-9A-Za-z*/,~-]+){4}$/.test(text)
    ? undefined
    : 'must be the five fields of cron (minute hour day month weekday), or @reboot, @hourly, @daily, @weekly, @monthly, @yearly';

export const sysctlKey: Check = (key) =>
  /^[A-Za-z0-9_][A-Za-z0-9_./:-]*$/.test(key) && !key.includes('..')
    ? undefined
    : 'must be a kernel parameter, such as net.ipv4.ip_forward';

/**
 * Converts a key to the form in which identities are compared, with dots as separators. The separator of a key is
 * its first "." or "/".
 */
export const canonicalSysctlKey = (key: string): string =>
  /^[^./]*\//.test(key) ? key.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/')) : key;

export const hostname: Check = (name) =>
  name.length <= 64 && /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/.test(name)
    ? undefined
    : 'must be a host name: letters, digits and "-", in parts separated by dots, up to 64 characters';

export const timezone: Check = byPattern(
  /^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/,
  'must be a time zone of the system, such as Europe/Paris',
);

export const localeName: Check = byPattern(
  /^(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)(\.[A-Za-z0-9][A-Za-z0-9-]{0,39})?(@[a-z]{1,20})?$/,
  'must be the name of a locale, such as de_DE.UTF-8 or de_DE@euro',
);

/** The name of a file in /usr/share/i18n/charmaps. */
export const localeCharset: Check = byPattern(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/,
  'must be the name of a character set, such as UTF-8',
);

/**
 * Converts the name of a locale to the form in which glibc compares names: a character set in lower case, without
 * punctuation, and with the prefix `iso` if it consists of digits.
 */
export const canonicalLocale = (name: string): string =>
  name.replace(/\.([^@]*)/, (_, charset: string) => {
    const word = charset.toLowerCase().replace(/[^a-z0-9]/g, '');
    return `.${/^\d+$/.test(word) ? 'iso' : ''}${word}`;
  });

export const sshKey: Check = byPattern(
  /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{16,}={0,2}$/,
  'must be the type and the key, such as "ssh-ed25519 AAAAC3…", without options; write text after the key into `comment`',
);

export const aptSourceWord: Check = byPattern(/^[^\s\x00-\x1f]+$/, 'must be one word, without spaces');

export const marker: Check = allOf(
  notEmpty,
  maxLength(128),
  byPattern(/^[^\s\x00-\x1f]+$/, 'must be one word, without spaces'),
);

export const base64: Check = (text) => {
  const packed = text.replace(/\s+/g, '');
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)
    ? undefined
    : 'must be base64, padded with "="';
};

/** Compiles the pattern with the `u` flag, as the agent does. */
export const regularExpression: Check = (text) => {
  try {
    new RegExp(text, 'u');
    return undefined;
  } catch (error) {
    return `is not a regular expression: ${(error as Error).message}`;
  }
};

/** The agent replaces `%` in the command with the path of the new content. */
export const validateCommand: Check = allOf(notEmpty, oneLine, (text) =>
  text.includes('%') ? undefined : 'must contain "%", which represents the file with the new content',
);

/** A single line of text that neither begins nor ends with a space. */
const trimmedLine = allOf(notEmpty, oneLine, maxLength(1000), (text) =>
  text.trim() === text ? undefined : 'must not begin or end with a space',
);

/** Maximum number of keys in a pointer. */
const maximumDepth = 32;

/** A JSON pointer (RFC 6901) to a value below the root. */
export const pointer: Check = (text) => {
  if (!text.startsWith('/')) return 'must begin with "/", such as /log/level';
  if (/~(?![01])/.test(text)) return 'must not contain "~" alone: write ~0 for "~", and ~1 for "/"';
  if (/[\n\r\0]/.test(text)) return 'must be one line, without line breaks';
  if (text.length > 1000) return 'is longer than 1000 characters';
  return text.split('/').length - 1 > maximumDepth ? `must have at most ${maximumDepth} keys` : undefined;
};

export const iniSection: Check = allOf(
  trimmedLine,
  byPattern(/^[^[\]]*$/, 'must not contain brackets: write the name of the section alone'),
);

export const iniKey: Check = allOf(
  trimmedLine,
  byPattern(/^[^#;[=][^=]*$/, 'must not contain "=", or begin with "#", ";", or "["'),
);

/** PostgreSQL truncates longer names without an error. */
const longestPostgresqlName = 63;

export const postgresqlName: Check = allOf(
  notEmpty,
  byPattern(/^[^\x00-\x1f\x7f]*$/, 'must not contain control characters'),
  (text) =>
    new TextEncoder().encode(text).length > longestPostgresqlName
      ? `is longer than ${longestPostgresqlName} bytes`
      : undefined,
);

export const postgresqlRole: Check = allOf(postgresqlName, (text) =>
  text === 'none' ? 'must not be none, which PostgreSQL reserves' : undefined,
);

export const postgresqlEncoding: Check = byPattern(
  /^[A-Z][A-Z0-9_]{0,31}$/,
  'must be the name of an encoding in upper case, such as UTF8 or LATIN1',
);

export const postgresqlLocale: Check = byPattern(
  /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$/,
  'must be a locale of the system, such as C.UTF-8 or en_US.UTF-8',
);

/** Characters that SASLprep (RFC 4013) does not change. */
export const printableAscii: Check = byPattern(/^[\x20-\x7e]*$/, 'must contain only printable ASCII characters');

/** MariaDB allows 64 characters, and no backslash that the client could read as a command. */
export const mysqlName: Check = allOf(
  notEmpty,
  maxLength(64),
  byPattern(
    /^[^\x00-\x1f\x7f/\\.]*[^\x00-\x1f\x7f/\\. ]$/,
    'must not contain "/", "\\", ".", or control characters, or end with a space',
  ),
);

export const mysqlUser: Check = allOf(
  notEmpty,
  maxLength(80),
  byPattern(/^[^\x00-\x1f\x7f\\'"`@]*$/, 'must not contain quotes, "\\", "@", or control characters'),
);

/** Anonymous users have an empty name. */
export const mysqlUserOrAnonymous: Check = (name) => (name === '' ? undefined : mysqlUser(name));

export const mysqlHost: Check = byPattern(
  /^[a-z0-9_.:%/-]{1,255}$/,
  'must be a host name in lower case, an address, or a pattern with "%", such as 192.0.2.%',
);

export const mysqlCharacterSet: Check = byPattern(
  /^[a-z][a-z0-9_]{0,63}$/,
  'must be the name of a character set or a collation, such as utf8mb4',
);
