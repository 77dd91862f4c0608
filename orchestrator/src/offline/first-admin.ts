import { execFile } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { chmod, chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { visible } from '@muster/protocol';
import { type Document, parseDocument } from 'yaml';

/**
 * The command `muster orchestrator init`, which creates the first admin of an orchestrator that is installed as a
 * service. Writes the key to the configuration, restarts the service, and reports the result.
 */

const usage = `Usage: sudo muster orchestrator init [options]

Makes you the first admin of the orchestrator that is installed on this machine:
writes your public key to its configuration and restarts it. Requires
--operator-key and --username.

  --operator-key KEY      Your public key, as "muster operator init" prints it
  --username NAME         Your name
  --advertised-host HOST  Name or address that agents and operators use
  --config FILE           Configuration file (/etc/muster/orchestrator.yml)
  --data-dir DIR          Data directory (/var/lib/muster-orchestrator)
  --service NAME          Name of the systemd unit (muster-orchestrator)

Example:
  $ sudo muster orchestrator init --username ada \\
      --operator-key "$(muster operator init)"
`;

class UsageError extends Error {}

const options = {
  'operator-key': { type: 'string' },
  username: { type: 'string' },
  'advertised-host': { type: 'string' },
  config: { type: 'string', default: '/etc/muster/orchestrator.yml' },
  'data-dir': { type: 'string', default: '/var/lib/muster-orchestrator' },
  service: { type: 'string', default: 'muster-orchestrator' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

function readArguments(args: readonly string[]) {
  let values: ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];
  try {
    values = parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0]);
  }
  const { 'operator-key': key = '', username = '', 'advertised-host': host } = values;
  if (values.help) return null;
  if (!/^[0-9a-fA-F]{64}$/.test(key.trim()))
    throw new UsageError(
      '--operator-key must be 64 hexadecimal digits; "muster operator init" prints them once, and "muster operator whoami --public-key" prints them again',
    );
  if (username === '') throw new UsageError('--username is required: your operator name');
  if (host !== undefined && !/^[\x21-\x7e]{1,253}$/.test(host))
    throw new UsageError('--advertised-host must be a name or an address, such as muster.example');
  return { key: key.trim().toLowerCase(), username, host: host ?? null, ...values };
}

/** Access to systemd and to the output. Tests replace it. */
export interface Machine {
  /**
   * Runs systemctl.
   * @returns its standard output
   * @throws Error with its standard error if it fails
   */
  systemctl(...args: string[]): Promise<string>;
  stdout(text: string): void;
  stderr(text: string): void;
}

/** @returns the exit code */
export async function initOrchestrator(args: readonly string[], machine: Machine = thisMachine): Promise<number> {
  const say = (text: string) => machine.stderr(`muster orchestrator init: ${visible(text)}\n`);
  try {
    const given = readArguments(args);
    if (given === null) {
      machine.stdout(usage);
      return 0;
    }
    const { key, username, host, config, service } = given;
    const former = await writeKeys(config, {
      bootstrap_key: key,
      bootstrap_username: username,
      ...(host === null ? {} : { advertised_host: host }),
    });
    const restart = () =>
      machine.systemctl('restart', service).catch((error: Error) => {
        throw new Error(`${service} failed to start: ${error.message.trim()}; see journalctl -u ${service}`);
      });
    await restart();
    const status = (await machine.systemctl('show', '--property=StatusText', '--value', service)).trim();
    const port = /:(\d+), agents on port/.exec(status)?.[1] ?? '4748';
    const made = status.endsWith(`created first operator ${username}`);
    if (!made) {
      // The key must be removed from the configuration, because it would become the first admin of any new database.
      await replace(config, former);
      await restart();
      say('this orchestrator already has its first admin');
      machine.stderr('An admin can add you: muster operator add\n');
      return 1;
    }
    const fingerprint = await fingerprintIn(given['data-dir']);
    machine.stderr(`${username} is the first admin of this orchestrator.\n`);
    if (fingerprint !== null) machine.stderr(`Fingerprint of its certificate: ${fingerprint}\n`);
    machine.stderr(
      `\nOn this machine:\n  muster agents list\nOn another machine, with the same key:\n  muster login --url https://${host ?? hostname()}:${port}${fingerprint === null ? '' : ` --fingerprint ${fingerprint}`}\n`,
    );
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      say(`${error.message}\nSee: muster orchestrator init --help`);
      return 2;
    }
    const { code, message } = error as NodeJS.ErrnoException;
    say(
      code === 'EACCES' || code === 'EPERM' ? `${message}\nRun it as root: sudo muster orchestrator init …` : message,
    );
    return 1;
  }
}

/** Sets these keys in the file, and preserves all other settings and comments. @returns the previous content */
async function writeKeys(path: string, keys: Readonly<Record<string, string>>): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(
      `${path} does not exist: is the package muster-orchestrator installed? If the file is elsewhere, use --config`,
    );
  });
  const document: Document = parseDocument(text);
  if (document.errors.length > 0)
    throw new Error(`${path} cannot be read: ${document.errors[0]?.message.split('\n')[0]}`);
  if (document.contents === null) document.contents = document.createNode({}) as never;
  for (const [name, value] of Object.entries(keys)) document.set(name, value);
  await replace(path, document.toString({ lineWidth: 0 }));
  return text;
}

async function replace(path: string, text: string): Promise<void> {
  const { mode, uid, gid } = await stat(path);
  const temporary = join(dirname(path), `.orchestrator.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeFile(temporary, text, { mode: 0o600, flush: true });
    await chown(temporary, uid, gid);
    await chmod(temporary, mode & 0o777);
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** @returns the fingerprint of the generated certificate; null if the operator configured another certificate */
async function fingerprintIn(dataDir: string): Promise<string | null> {
  const pem = await readFile(join(dataDir, 'api.crt')).catch(() => null);
  return pem === null ? null : new X509Certificate(pem).fingerprint256;
}

const thisMachine: Machine = {
  systemctl: async (...args) =>
    (
      await promisify(execFile)('systemctl', args).catch((error: Error & { stderr?: string }) => {
        throw new Error(error.stderr?.trim() || error.message);
      })
    ).stdout,
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
};
