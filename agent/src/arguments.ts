import { parseArgs } from 'node:util';
import type { LogFormat } from './log.ts';

export const help = `Usage: muster agent [options] [connect HOST:PORT [--orchestrator-key HEX] [--token T]]

Keeps this machine as its orchestrator wants it. The address is remembered after the first
"connect": later starts need no arguments.

Started without ever having been told an address, it waits to be found: it listens on UDP port
4747 for an orchestrator that announces itself (there: muster discover), trusts the first one,
and waits for approval. "discovery: { enabled: false }" in its configuration forbids that.

  connect HOST:PORT         the orchestrator's port for agents, usually 4747
  --orchestrator-key HEX    its public key, 64 hex digits; without, the first one seen is trusted
  --token T                 enrolment token, from "muster agents enroll"; - reads it from standard input
  --save                    only remember all this, and end: the service that runs the agent finds it

  --config FILE             YAML with remote_terminal, metrics, discovery; read again when it changes
  --data-dir D              the agent's key, journal and snapshots (default /var/lib/muster-agent)
  --hostname H              name to introduce itself by (default: this machine's)
  --facts-dir D             YAML files and programs that add attributes (default facts.d in the data directory)
  --log-format json|text    (default text)
  --log-level LEVEL         debug, info, warn or error (default info)
  --check-config FILE       say what is wrong with a configuration file, and start nothing (2: something is)
  --print-schema            print its JSON Schema, for editors
  -h, --help                this text
  --version                 the version

Example:
  muster agent connect muster.example:4747 --orchestrator-key 3f…c1 --token 9hQ…
`;

export interface AgentArguments {
  dataDir: string;
  configPath: string | null;
  factsDir: string | null;
  hostname: string | null;
  logFormat: LogFormat;
  logLevel: 'debug' | 'info' | 'warn' | 'error';
  connect: { host: string; port: number; orchestratorKey: string | null; token: string | null } | null;
  /** Only remember where to connect. */
  save?: true;
}

/** The command line is not one of `help`; the message says what to type. */
export class UsageError extends Error {}

const options = {
  config: { type: 'string' },
  'data-dir': { type: 'string', default: '/var/lib/muster-agent' },
  'facts-dir': { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
  hostname: { type: 'string' },
  'log-format': { type: 'string', default: 'text' },
  'log-level': { type: 'string', default: 'info' },
  'orchestrator-key': { type: 'string' },
  save: { type: 'boolean', default: false },
  token: { type: 'string' },
  version: { type: 'boolean', default: false },
} as const;

const levels = ['debug', 'info', 'warn', 'error'] as const;

/**
 * @param argv what follows `muster agent`
 * @throws UsageError
 */
export function parseArguments(argv: readonly string[]): AgentArguments | 'help' | 'version' {
  const { values, positionals } = parse(argv);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const logFormat = values['log-format'];
  if (logFormat !== 'json' && logFormat !== 'text') throw new UsageError('--log-format is json or text');
  const logLevel = levels.find((level) => level === values['log-level']);
  if (logLevel === undefined) throw new UsageError(`--log-level is one of ${levels.join(', ')}`);
  if (values.hostname !== undefined && !/^[\x21-\x7e]{1,253}$/.test(values.hostname))
    throw new UsageError('--hostname is 1 to 253 printable characters without spaces');
  if (values['data-dir'] === '') throw new UsageError('--data-dir is empty');
  const connect = parseConnect(positionals, values['orchestrator-key'], values.token);
  if (values.save && connect === null)
    throw new UsageError('--save goes with an address: muster agent connect HOST:PORT … --save');
  return {
    dataDir: values['data-dir'],
    configPath: values.config ?? null,
    factsDir: values['facts-dir'] ?? null,
    hostname: values.hostname ?? null,
    logFormat,
    logLevel,
    connect,
    ...(values.save ? { save: true as const } : {}),
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node's own advice ("to specify a positional …") is for programmers.
    throw new UsageError((error as Error).message.split('. ')[0]!);
  }
}

function parseConnect(
  positionals: readonly string[],
  key: string | undefined,
  token: string | undefined,
): AgentArguments['connect'] {
  const [verb, address, ...rest] = positionals;
  if (verb === undefined) {
    if (key !== undefined || token !== undefined)
      throw new UsageError('--orchestrator-key and --token go with an address: muster agent connect HOST:PORT …');
    return null;
  }
  if (verb !== 'connect') throw new UsageError(`"${verb}" is not known; did you mean "connect HOST:PORT"?`);
  if (address === undefined) throw new UsageError('connect needs an address: muster agent connect HOST:PORT');
  if (rest.length > 0) throw new UsageError(`"${rest[0]}" is one argument too many`);
  if (key !== undefined && !/^[0-9a-fA-F]{64}$/.test(key))
    throw new UsageError('--orchestrator-key is 64 hexadecimal digits; "muster agents enroll" prints it');
  if (token !== undefined && (token === '' || token.length > 128))
    throw new UsageError('--token is 1 to 128 characters');
  return { ...parseAddress(address), orchestratorKey: key?.toLowerCase() ?? null, token: token ?? null };
}

function parseAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port < 1 || port > 65_535)
    throw new UsageError(`"${address}" is not HOST:PORT, such as muster.example:4747 or [2001:db8::1]:4747`);
  return { host: (match[1] ?? match[2])!, port };
}
