import { HostFailure } from '../failure.ts';
import { failureText, lastLine } from '../processes/failure-text.ts';
import { type Runner, runInEnglish } from '../processes/run-command.ts';
import { parseStanzas } from './dpkg.ts';
import { parsePackages } from './rpm.ts';
import { versionText } from './rpm-version.ts';

/** The package in a .deb or .rpm file, as described by the file. */
export interface FileContents {
  name: string;
  /** The version in the notation that apt or dnf accepts. */
  version: string;
  architecture: string;
}

type FileContext = Runner & { limits: { packageMs: number } };

/** Maximum number of bytes of the fields; a longer field is refused. */
const outputCap = 16 * 1024;

/**
 * Reads the fields of a .deb file, without unpacking its data.
 * @throws HostFailure if it is not a .deb file
 */
export async function readDebFile(path: string, context: FileContext): Promise<FileContents> {
  const args = ['--field', path, 'Package', 'Version', 'Architecture'];
  return parseDebFields(await output('dpkg-deb', args, path, 'a .deb file', context));
}

/**
 * @param text output of `dpkg-deb --field FILE Package Version Architecture`
 * @throws HostFailure if a field is missing or invalid
 */
export function parseDebFields(text: string): FileContents {
  const [fields] = parseStanzas(text);
  const [name = '', version = '', architecture = ''] = ['package', 'version', 'architecture'].map((field) =>
    fields?.get(field),
  );
  const isValid =
    /^[a-z0-9][a-z0-9+.-]{0,254}$/.test(name) &&
    /^(?:\d+:)?[A-Za-z0-9.+~-]{1,255}$/.test(version) &&
    /^[a-z0-9][a-z0-9-]{0,63}$/.test(architecture);
  if (!isValid) throw new HostFailure('the file has no valid package name, version, and architecture');
  return { name, version, architecture };
}

const rpmFields = ['%{NAME}', '%{EPOCHNUM}', '%{VERSION}', '%{RELEASE}', '%{ARCH}', '%{SOURCEPACKAGE}'];

/**
 * Reads the header of an .rpm file.
 * @throws HostFailure if it is not an .rpm file, or is a source package
 */
export async function readRpmFile(path: string, context: FileContext): Promise<FileContents> {
  // Without `--nomanifest`, rpm reads any other file as a list of packages.
  const args = ['--query', '--nomanifest', '--queryformat', `${rpmFields.join('\\t')}\\n`, '--package', '--', path];
  return parseRpmFields(await output('rpm', args, path, 'an .rpm file', context));
}

/**
 * @param text one line with the fields
 * @throws HostFailure if a field is missing or invalid
 */
export function parseRpmFields(text: string): FileContents {
  const [, line = '', source] = /^([^\n]*)\t([^\t\n]*)\n?$/.exec(text) ?? [];
  const [found] = parsePackages(line);
  const isValid =
    found !== undefined &&
    /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254}$/.test(found.name) &&
    [found.version, found.release].every((part) => /^[A-Za-z0-9_.+~^]{1,255}$/.test(part));
  if (!isValid) throw new HostFailure('the file has no valid package name, version, and architecture');
  if (source !== '(none)') throw new HostFailure('the file is a source package; use a binary package');
  return { name: found.name, version: versionText(found), architecture: found.arch };
}

async function output(
  program: string,
  args: readonly string[],
  path: string,
  what: string,
  context: FileContext,
): Promise<string> {
  const timeLimit = context.limits.packageMs;
  const result = await runInEnglish(program, args, { timeLimit, outputCap }, context);
  if (result.exitCode === 0) return result.stdout;
  const message = failureText(result, program, timeLimit, (text) => lastLine(text).replaceAll(path, 'the file'));
  throw new HostFailure(`the file is not ${what}: ${message}`);
}
