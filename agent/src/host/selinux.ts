import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import { HostFailure } from './failure.ts';
import { failureText, lastLine } from './processes/failure-text.ts';
import { missingProgram } from './processes/find-program.ts';
import { type Command, type CommandResult, runInEnglish } from './processes/run-command.ts';
import { runTransaction } from './processes/transaction.ts';
import { exists, fileStatus, namesIn, readText } from './read-system.ts';

/**
 * Reads SELinux's state from files, and changes it with the programs of policycoreutils. These take seconds for each
 * change, and semanage takes a second for each list, so lists are read from the files that libsemanage keeps. Their
 * format is that of libsemanage 2.5 to 3.8.
 */

export type SelinuxMode = 'enforcing' | 'permissive' | 'disabled';

/** Context for running programs that must not be killed in the middle of a transaction. */
export interface PolicyRunner {
  clock: Clock;
  stop: AbortSignal;
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  warn(message: string): void;
}

/** Local records, which semanage adds to the records that the policy defines. */
export interface LocalRecords {
  /** Values by name. */
  booleans: ReadonlyMap<string, boolean>;
  /** Contexts by protocol and port, such as `tcp/80` and `tcp/8000-8010`. */
  ports: ReadonlyMap<string, Context>;
  /** Contexts by file type and pattern, as in {@link contextKey}. */
  contexts: ReadonlyMap<string, Context>;
}

/** A context without its role, which is always the same. `type` is `<<none>>` for files that are not labeled. */
export type Context = { user: string | null; type: string; range: string | null };

export const config = '/etc/selinux/config';
const kernel = '/sys/fs/selinux';
/** Maximum size of a file of records in bytes. Each record takes about 100 bytes. */
const maxRecords = 8 * 1024 * 1024;
/** Maximum number of bytes of a program's output to keep. */
const maxOutput = 64 * 1024;
const minute = 60_000;
/** Milliseconds for one transaction, which compiles the whole policy. */
const transactionLimit = 15 * minute;
/** Milliseconds for reading or writing the labels of all files below some directories. */
const labelLimit = 60 * minute;
/** Seconds to wait for a transaction of another program. */
const lockSeconds = 120;

/**
 * Returns the running mode; `disabled` if the kernel does not use SELinux.
 * @param root directory that contains /sys, for tests
 */
export function runningMode(root = ''): SelinuxMode {
  const enforce = readText(`${root}${kernel}/enforce`)?.trim();
  return enforce === '1' ? 'enforcing' : enforce === '0' ? 'permissive' : 'disabled';
}

/**
 * Returns the name of the policy in the text of the configuration, as libselinux parses it: the last line takes effect,
 * and lines with a space before the equals sign are ignored.
 */
export const policyIn = (text: string): string =>
  [...text.matchAll(/^[ \t]*SELINUXTYPE=[ \t]*(\S+)/gim)].at(-1)?.[1] ?? 'targeted';

/** Returns the policy that is loaded at boot. */
const configuredPolicy = (): string => policyIn(readText(config) ?? '');

/** Reports whether the machine has a compiled policy with this name. */
export const hasPolicy = (policy: string): boolean =>
  isPolicyName(policy) && namesIn(`/etc/selinux/${policy}/policy`).some((name) => name.startsWith('policy.'));

const isPolicyName = (policy: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(policy);

/** Returns the directory of libsemanage's store for the configured policy. */
function store(): string {
  const settings = readText('/etc/selinux/semanage.conf') ?? '';
  const root = [...settings.matchAll(/^store-root[ \t]*=[ \t]*(\S+)/gm)].at(-1)?.[1] ?? '/var/lib/selinux';
  const policy = configuredPolicy();
  return `${root}/${isPolicyName(policy) ? policy : 'targeted'}`;
}

export type RecordFile = 'booleans' | 'ports' | 'file_contexts';

/** Returns the path of a file of local records. */
export const recordPath = (file: RecordFile): string => `${store()}/active/${file}.local`;

/** Returns why records cannot be changed; null if they can. */
export function missingForRecords(): string | null {
  if (runningMode() === 'disabled')
    return 'SELinux is off on this machine; declare selinux-mode, and reboot the machine, or give the resource `when: { selinux: { not: disabled } }`';
  return missingTools();
}

/** Returns which program or policy is missing for changes to the store. The store also exists while SELinux is off. */
export function missingTools(): string | null {
  if (!exists(`${store()}/active`))
    return `there is no policy ${configuredPolicy()} in ${store()}; install the policy that ${config} names`;
  const program = ['semanage', 'setsebool', 'restorecon'].find((name) => missingProgram(name) !== null);
  return program === undefined
    ? null
    : `there is no program ${program}; install the package \`policycoreutils-python-utils\``;
}

/**
 * Reads all local records.
 * @throws HostFailure if a file is too large, or if another program does not finish its transaction
 */
export async function readRecords(runner: PolicyRunner): Promise<LocalRecords> {
  await withoutTransaction(runner);
  return {
    booleans: parseBooleans(recordsIn('booleans')),
    ports: parsePorts(recordsIn('ports')),
    contexts: parseContexts(recordsIn('file_contexts')),
  };
}

function recordsIn(file: RecordFile): string {
  const path = recordPath(file);
  const size = fileStatus(path)?.size ?? 0;
  if (size > maxRecords) throw new HostFailure(`${path} has ${size} bytes, more than the agent reads`);
  return readText(path) ?? '';
}

/** Waits for a transaction that a killed agent, or another program, has begun. */
async function withoutTransaction(runner: PolicyRunner): Promise<void> {
  const lock = `${store()}/semanage.trans.LOCK`;
  if (!exists(lock) || missingProgram('flock') !== null) return;
  const limits = { timeLimit: (lockSeconds + 10) * 1000, outputCap: 4096 };
  const { exitCode } = await runInEnglish('flock', ['--wait', String(lockSeconds), lock, 'true'], limits, runner);
  if (exitCode !== 0)
    throw new HostFailure(`another program has been changing the SELinux policy for ${lockSeconds} s (${lock}); retry`);
}

/** @param text lines such as `httpd_enable_cgi=1` */
export const parseBooleans = (text: string): Map<string, boolean> =>
  new Map(
    [...text.matchAll(/^\s*([\w.-]+)\s*=\s*(1|0|true|false)\s*$/gm)].map(([, name = '', value]) => [
      name,
      value === '1' || value === 'true',
    ]),
  );

/** @param text lines such as `portcon tcp 8000 - 8010 system_u:object_r:http_port_t:s0` */
export const parsePorts = (text: string): Map<string, Context> =>
  new Map(
    [...text.matchAll(/^portcon\s+(\w+)\s+(\d+)(?:\s*-\s*(\d+))?\s+(\S+)\s*$/gm)].map(
      ([, protocol = '', low = '', high = low, context = '']) => [
        `${protocol}/${high === low ? low : `${low}-${high}`}`,
        parseContext(context),
      ],
    ),
  );

/**
 * Letters for file types. In context files, the letter follows a dash, and a regular file has a second dash instead of
 * a letter. semanage accepts the letters as arguments.
 */
const fileTypes: Readonly<Record<string, string>> = {
  ...{ any: 'a', file: 'f', directory: 'd', symlink: 'l', socket: 's', pipe: 'p', block: 'b', character: 'c' },
};
const letters: Readonly<Record<string, string>> = { '': 'a', '--': 'f' };

/** Returns the key of a pattern in {@link LocalRecords.contexts}. */
export const contextKey = (fileType: string, target: string): string => `${fileTypes[fileType] ?? 'a'} ${target}`;

/** @param text lines such as `/srv/web(/.*)? -d system_u:object_r:httpd_sys_content_t:s0` */
export const parseContexts = (text: string): Map<string, Context> =>
  new Map(
    [...text.matchAll(/^(\/\S*)[ \t]+(?:(-[-dlspbc])[ \t]+)?(\S+)[ \t]*$/gm)].map(
      ([, target = '', type = '', context = '']) => [
        `${letters[type] ?? type.slice(1)} ${target}`,
        parseContext(context),
      ],
    ),
  );

/** @param text such as `system_u:object_r:http_port_t:s0`, in which a range may contain colons */
function parseContext(text: string): Context {
  const [user = '', , type, ...range] = text.split(':');
  if (type === undefined) return { user: null, type: text, range: null };
  return { user, type, range: range.length === 0 ? null : range.join(':') };
}

/** Returns the running value of a boolean; null if the kernel has no such boolean. */
export function runningValue(name: string): boolean | null {
  const value = readText(`${kernel}/booleans/${name}`)?.trim();
  return value === undefined || !/^[01]\b/.test(value) ? null : value.startsWith('1');
}

/** Sets the running value, and, with `persistent`, also the value at the next boot. */
export async function setBoolean(
  name: string,
  value: boolean,
  { persistent }: { persistent: boolean },
  runner: PolicyRunner,
): Promise<void> {
  const args = [...(persistent ? ['-P'] : []), `${name}=${value ? '1' : '0'}`];
  await change('setsebool', args, `set the SELinux boolean ${name}`, runner);
}

// semanage has no option that deletes a single boolean, but its Python module has a function for this.
const deletion = 'import sys, seobject; seobject.booleanRecords().delete(sys.argv[1])';

/** Removes the local value of a boolean, so that the policy's value applies at the next boot. */
export async function deleteBoolean(name: string, runner: PolicyRunner): Promise<void> {
  await change(semanagePython(), ['-E', '-s', '-c', deletion, name], `delete the local value of ${name}`, runner);
}

/** Returns the Python that has semanage's modules: the one that runs semanage. */
function semanagePython(): string {
  const path = ['/usr/sbin/semanage', '/sbin/semanage'].find(exists) ?? '';
  return /^#! *(\/\S*python\S*)/.exec((readText(path) ?? '').slice(0, 256))?.[1] ?? 'python3';
}

/**
 * Sets or deletes a local record.
 * @param object object and arguments that identify the record, such as `['port', '-p', 'tcp', '80']`
 * @param now the current local record; null if there is none
 * @param next the desired record; null to delete it. A field that is null is not changed
 */
export async function setRecord(
  { object, key, what }: { object: 'port' | 'fcontext'; key: readonly string[]; what: string },
  now: Context | null,
  next: Partial<Context> | null,
  runner: PolicyRunner,
): Promise<void> {
  const doing = `${next === null ? 'delete' : 'record'} the SELinux context of ${what}`;
  if (next === null) return semanage([object, '-d', ...key], doing, runner);
  const labeled = next.type !== '<<none>>';
  const fields = [
    ...(next.type == null ? [] : ['-t', next.type]),
    ...(labeled && next.user != null && object === 'fcontext' ? ['-s', next.user] : []),
    ...(labeled && next.range != null ? ['-r', next.range] : []),
  ];
  if (now !== null) return semanage([object, '-m', ...fields, ...key], doing, runner);
  try {
    await semanage([object, '-a', ...fields, ...key], doing, runner);
  } catch (error) {
    // The policy defines a record with this key, which semanage can only modify.
    if (!(error instanceof HostFailure) || !error.message.includes('already defined')) throw error;
    await semanage([object, '-m', ...fields, ...key], doing, runner);
  }
}

export const portKey = (protocol: string, port: string): string[] => ['-p', protocol, port];
export const patternKey = (fileType: string, target: string): string[] => ['-f', fileTypes[fileType] ?? 'a', target];

const semanage = (args: readonly string[], doing: string, runner: PolicyRunner): Promise<void> =>
  change('semanage', args, doing, runner);

async function change(program: string, args: readonly string[], doing: string, runner: PolicyRunner): Promise<void> {
  await withoutTransaction(runner);
  // A program that is killed, or that prints to a pipe without a reader, could leave the store without a policy.
  const { output, ...result } = await runTransaction(
    {
      ...{ program, args, environment: { LC_ALL: 'C' }, timeLimit: transactionLimit, outputCap: maxOutput },
      ...{ purpose: 'selinux', warn: runner.warn, stop: runner.stop },
      started: (process) => runner.startedProcess(process, 'left'),
    },
    runner.clock,
  );
  if (result.exitCode === 0) return;
  const reason = failureText({ ...result, stderr: output }, program, transactionLimit, semanageMessage);
  throw new HostFailure(`cannot ${doing}: ${reason}`);
}

const run = (
  program: string,
  args: readonly string[],
  timeLimit: number,
  runner: PolicyRunner,
  printed?: Command['printed'],
): Promise<CommandResult> =>
  runInEnglish(
    program,
    args,
    { timeLimit, outputCap: maxOutput, ...(printed === undefined ? {} : { printed }) },
    runner,
  );

/**
 * Returns the reason in the standard error of semanage, whose last line may be a Python exception without a message.
 */
export function semanageMessage(stderr: string): string {
  if (stderr.includes('protocol not found'))
    return 'semanage finds no protocols in /etc/protocols; install the package `netbase` or `setup`';
  const lines = stderr.split('\n').map((line) => line.trim());
  const reason =
    lines.findLast((line) => /^ValueError: /.test(line)) ??
    lines.find((line) => /has invalid regex|^libsemanage\.(?!add_user)\w+: (?!WARNING)/.test(line)) ??
    lastLine(stderr);
  return reason.replace(/^(ValueError|libsemanage\.\w+): /, '').slice(0, 500);
}

/** A file whose label differs from the policy. */
export interface WrongLabel {
  path: string;
  /** Null for a file without a label. */
  from: Context | null;
  to: Context;
}

/**
 * Returns the path as restorecon prints it, with the symbolic links above it resolved; null if the path does not exist,
 * in which case restorecon would fail.
 */
export function printedPath(path: string): string | null {
  if (!exists(path)) return null;
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return null;
  }
}

/**
 * Reports the files whose label differs from the policy, at or below some paths. Calls `found` for each file
 * immediately, because a list of all files may be large. Includes files that differ only in user, role, or range.
 */
export async function wrongLabels(
  paths: readonly string[],
  runner: PolicyRunner,
  found: (label: WrongLabel) => void,
): Promise<void> {
  const present = [...new Set(paths)].filter((path) => printedPath(path) !== null);
  if (present.length === 0) return;
  const lines = new LineReader((line) => {
    const label = parseLabel(line);
    if (label !== null) found(label);
  });
  // Without -F, restorecon skips types that the policy calls customizable, and compares only types.
  const args = ['-R', '-F', '-n', '-v', '--', ...present];
  const result = await run('restorecon', args, labelLimit, runner, (stream, piece) => {
    if (stream === 'stdout') lines.add(piece);
  });
  lines.end();
  if (result.exitCode !== 0)
    throw new HostFailure(`cannot check SELinux labels: ${failureText(result, 'restorecon', labelLimit, lastLine)}`);
}

/** @param line such as `Would relabel /srv/a from (null) to system_u:object_r:var_t:s0` */
export function parseLabel(line: string): WrongLabel | null {
  const [, path, from = '', to = ''] = /^Would relabel (\/.*) from (\S+|<no context>) to (\S+)$/.exec(line) ?? [];
  if (path === undefined) return null;
  return { path, from: from.includes(':') ? parseContext(from) : null, to: parseContext(to) };
}

/** Splits output into lines. Ignores lines that are longer than the longest path with two labels. */
class LineReader {
  static readonly #maxLine = 16 * 1024;
  readonly #line: (line: string) => void;
  #rest = '';

  constructor(line: (line: string) => void) {
    this.#line = line;
  }

  add(piece: Buffer): void {
    // A path may contain any bytes, and a character may be split between chunks.
    const lines = `${this.#rest}${piece.toString('latin1')}`.split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, LineReader.#maxLine);
    for (const line of lines) this.#line(Buffer.from(line, 'latin1').toString('utf8'));
  }

  end(): void {
    if (this.#rest !== '') this.add(Buffer.from('\n'));
  }
}

/**
 * Labels all files at or below some paths as the policy defines, including user and range, and types that the policy
 * calls customizable. Does not follow symbolic links below them.
 */
export async function restoreLabels(paths: readonly string[], runner: PolicyRunner): Promise<void> {
  const present = paths.filter((path) => printedPath(path) !== null);
  if (present.length === 0) return;
  const result = await run('restorecon', ['-R', '-F', '--', ...present], labelLimit, runner);
  if (result.exitCode !== 0)
    throw new HostFailure(`cannot restore SELinux labels: ${failureText(result, 'restorecon', labelLimit, lastLine)}`);
}

/** Changes the running mode. */
export async function setRunningMode(mode: 'enforcing' | 'permissive', runner: PolicyRunner): Promise<void> {
  const result = await run('setenforce', [mode === 'enforcing' ? '1' : '0'], minute, runner);
  if (result.exitCode !== 0)
    throw new HostFailure(`cannot make SELinux ${mode}: ${failureText(result, 'setenforce', minute, lastLine)}`);
}

/** Returns how to install the program that changes the running mode; null if it exists. */
export const missingSetenforce = (): string | null =>
  missingProgram('setenforce') === null
    ? null
    : 'there is no program setenforce; install the package `selinux-utils` or `libselinux-utils`';
