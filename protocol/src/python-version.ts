/** Names and versions of Python packages, as pip compares them. */

/** Returns the form in which names are compared: `Zope.Interface` and `zope-interface` are one package (PEP 503). */
export const pythonName = (name: string): string => name.replaceAll(/[-_.]+/g, '-').toLowerCase();

/** Reports whether pip reads a name as the path of a file, because it ends with the suffix of an archive. */
export const isPythonArchive = (name: string): boolean =>
  /\.(whl|zip|tgz|tbz|txz|tlz|tar|tar\.(gz|bz2|xz|lz|lzma))$/i.test(name);

export interface PythonVersion {
  /** The version without its local part, in the form in which versions are compared. */
  readonly public: string;
  /** The part after "+", such as `cu121`; null if the version has none. */
  readonly local: string | null;
  /** The whole version as pip writes it, such as `1.0rc1` for `1.0-C1`. */
  readonly normal: string;
}

/** Maximum length of a version, in characters. */
export const maxPythonVersion = 128;

/** Each separator and number can match in only one way, so the time is linear. */
const publicPattern =
  /^v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?(\d*))?(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?$/;
const phases: Readonly<Record<string, string>> = { alpha: 'a', beta: 'b', preview: 'rc', pre: 'rc', c: 'rc' };

/** Returns a number without leading zeros. Numbers stay text, because they can exceed the safe integers. */
const plain = (digits: string): string => digits.replace(/^0+(?=\d)/, '') || '0';

/**
 * Parses a version as PEP 440 defines it.
 * @returns null if the text is not such a version, or is longer than `maxPythonVersion`
 */
export function pythonVersion(text: string): PythonVersion | null {
  // `toLowerCase` converts some non-ASCII characters to ASCII letters.
  if (text.length > maxPythonVersion || /[^ -~]/.test(text)) return null;
  const lower = text.toLowerCase();
  const plus = lower.indexOf('+');
  const match = publicPattern.exec(plus === -1 ? lower : lower.slice(0, plus));
  const local = plus === -1 ? null : localOf(lower.slice(plus + 1));
  if (match === null || local === undefined) return null;
  const [, epoch = '0', release = '', phase, phaseNumber = '', dashed, post, postNumber = '', dev, devNumber = ''] =
    match;
  const numbers = release.split('.').map(plain);
  const written = numbers.join('.');
  while (numbers.length > 1 && numbers.at(-1) === '0') numbers.pop();
  const before = phase === undefined ? '' : `${phases[phase] ?? phase}${plain(phaseNumber)}`;
  const after =
    dashed === undefined ? (post === undefined ? '' : `.post${plain(postNumber)}`) : `.post${plain(dashed)}`;
  const unfinished = dev === undefined ? '' : `.dev${plain(devNumber)}`;
  const first = plain(epoch) === '0' ? '' : `${plain(epoch)}!`;
  const rest = `${before}${after}${unfinished}`;
  return {
    public: `${first}${numbers.join('.')}${rest}`,
    local,
    normal: `${first}${written}${rest}${local === null ? '' : `+${local}`}`,
  };
}

/** Returns the local part in the form in which it is compared; undefined if it is not one. */
function localOf(text: string): string | undefined {
  const parts = text.split(/[-_.]/);
  if (!parts.every((part) => /^[a-z0-9]+$/.test(part))) return undefined;
  return parts.map((part) => (/^\d+$/.test(part) ? plain(part) : part)).join('.');
}

/**
 * Reports whether pip accepts an installed version as the declared one, as in `NAME==VERSION`. A declared version
 * without a local part matches any local part.
 */
export function isSamePythonVersion(installed: string, declared: string): boolean {
  const [one, other] = [pythonVersion(installed), pythonVersion(declared)];
  if (one === null || other === null) return installed === declared;
  return one.public === other.public && (other.local === null || one.local === other.local);
}
