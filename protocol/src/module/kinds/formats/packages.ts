import { isPythonArchive, maxPythonVersion, pythonName, pythonVersion } from '../../../python-version.ts';
import { allOf, byPattern, type Check, maxLength } from './text.ts';
import { httpUrl } from './urls.ts';

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

/** A repository ID that dnf accepts on its command line. */
export const dnfRepositoryId: Check = byPattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$/,
  'must be the id of one repository: letters, digits, "_", ".", ":", and "-"',
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
  if (isPythonArchive(name)) return 'must not end with the suffix of an archive, such as ".whl"';
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

/** The URL of a package index. Every user can see it in the arguments or the environment of the package manager. */
export const packageIndex: Check = (text) => {
  const fault = httpUrl(text);
  if (fault !== undefined) return fault;
  const url = URL.parse(text);
  return url?.username === '' && url.password === ''
    ? undefined
    : 'must not contain a user or password: put them into the settings of the package manager';
};

export const aptSourceWord: Check = byPattern(/^[^\s\x00-\x1f]+$/, 'must be one word, without spaces');
