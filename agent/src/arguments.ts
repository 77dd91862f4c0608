import { parseArgs } from 'node:util';
import { keyStatementLimits } from '@muster/protocol/wire';
import type { LogFormat } from './log.ts';

export const help = `Usage: muster agent [options] [connect HOST:PORT [--orchestrator-key HEX] [--token T]]
       muster agent rotate-key [--at-once | --former-good-for TIME] [--json] [--data-dir D]

Keeps this machine as its orchestrator wants it. The address is remembered after the first
"connect": later starts need no arguments.

Started without ever having been told an address, it waits to be found: it listens on UDP port
4747 for an orchestrator that announces itself (there: muster discover), trusts the first one,
and waits for approval. "discovery: { enabled: false }" in its configuration forbids that.

  connect HOST:PORT         the orchestrator's port for agents, usually 4747
  --orchestrator-key HEX    its public key, 64 hex digits; without, the first one seen is trusted
  --token T                 enrollment token, from "muster agents enroll"; - reads it from standard input.
                            Better in the variable MUSTER_TOKEN: other users see arguments
  --save                    only remember all this, and end: the service that runs the agent finds it

  rotate-key                give the agent of this machine a new key, which the old one signs; it stays the same agent.
                            Waits until the orchestrator has taken it. Ends with 0: in force; 1: refused, nothing has
                            changed; 5: it waits for the agent to run, or for its link
  --at-once                 the former key is good no more once the new one is in force, nor is any before it
  --former-good-for TIME    for so long it still is, such as 90m, 24h or 7d; 30d at most (default 24h)
  --json                    print what came of it as JSON

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

Examples:
  MUSTER_TOKEN=mt_… muster agent connect muster.example:4747 --orchestrator-key 3f…c1
  muster agent rotate-key --at-once
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
  /** Only give it a new key. */
  rotateKey?: {
    /** How long the former one is still good. */
    graceSecs: number;
    json: boolean;
  };
}

/** The command line is not one of `help`; the message says what to type. */
export class UsageError extends Error {}

const options = {
  'at-once': { type: 'boolean', default: false },
  config: { type: 'string' },
  'data-dir': { type: 'string', default: '/var/lib/muster-agent' },
  'facts-dir': { type: 'string' },
  'former-good-for': { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
  hostname: { type: 'string' },
  json: { type: 'boolean', default: false },
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
  const [verb, ...others] = positionals;
  const rotates = verb === 'rotate-key';
  if (rotates && others.length > 0) throw new UsageError(`"${others[0]}" is one argument too many`);
  for (const flag of ['at-once', 'former-good-for', 'json'] as const)
    if (!rotates && values[flag]) throw new UsageError(`--${flag} goes with rotate-key`);
  if (rotates && (values.save || values.token !== undefined || values['orchestrator-key'] !== undefined))
    throw new UsageError('rotate-key goes without --orchestrator-key, --token and --save');
  const connect = rotates ? null : parseConnect(positionals, values['orchestrator-key'], values.token);
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
    ...(rotates
      ? { rotateKey: { graceSecs: graceSecs(values['at-once'], values['former-good-for']), json: values.json } }
      : {}),
  };
}

const usualGraceSecs = 86_400;
const secondsOf = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

function graceSecs(atOnce: boolean, goodFor: string | undefined): number {
  if (atOnce && goodFor !== undefined) throw new UsageError('either --at-once or --former-good-for');
  if (atOnce) return 0;
  if (goodFor === undefined) return usualGraceSecs;
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(goodFor) ?? [];
  const grace = Number(count) * secondsOf[(unit ?? 's') as keyof typeof secondsOf];
  if (unit === undefined || grace > keyStatementLimits.longestGraceSecs)
    throw new UsageError(`--former-good-for is a time such as 90m, 24h or 7d, and at most 30d; not "${goodFor}"`);
  return grace;
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
