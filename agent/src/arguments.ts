import { parseArgs } from 'node:util';
import { keyStatementLimits } from '@muster/protocol/wire';
import type { LogFormat } from './log.ts';

export const help = `Usage: muster agent [options] [connect HOST:PORT [--orchestrator-key HEX] [--token T]]
       muster agent rotate-key [--at-once | --former-good-for TIME] [--json] [--data-dir D]

Keeps this machine in the state that its orchestrator declares. The first "connect" saves the
address; later starts need no arguments.

Without a saved address, it listens on UDP port 4747 for the announcement of an orchestrator
(muster discover), trusts the first one, and waits for approval. To prevent that, set
"discovery: { enabled: false }" in its configuration.

  connect HOST:PORT         the orchestrator's port for agents, usually 4747
  --orchestrator-key HEX    its public key, 64 hex digits; without it, the first key seen is trusted
  --token T                 enrollment token, from "muster agents enroll"; - reads it from standard input.
                            Prefer the variable MUSTER_TOKEN, because other users can see arguments
  --save                    only save these settings for the service that runs the agent

  rotate-key                create a new key for this agent, signed by the former one; the agent keeps its identity.
                            Waits until the orchestrator has accepted it. Exit codes: 0: in force; 1: refused, nothing
                            has changed; 5: waiting for the agent to run or to connect
  --at-once                 the previous key and all keys before it become invalid once the new key is in force
  --former-good-for TIME    how long the previous key stays valid, such as 90m, 24h, or 7d; at most 30d (default 24h)
  --json                    print the result as JSON

  --config FILE             YAML with remote_terminal, metrics, discovery; read again when it changes
  --data-dir D              the agent's key, journal, and snapshots (default /var/lib/muster-agent)
  --hostname H              name to report to the orchestrator (default: this machine's)
  --facts-dir D             YAML files and programs that add attributes (default facts.d in the data directory)
  --log-format json|text    (default text)
  --log-level LEVEL         debug, info, warn, or error (default info)
  --check-config FILE       print the faults of a configuration file and exit (2: it has faults)
  --print-schema            print its JSON Schema, for editors
  -h, --help                print this text
  --version                 print the version

To manage agents from an operator's machine: muster agents --help

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
  /** Whether to save the target and exit. */
  save?: true;
  /** If set, the program rotates the key and exits. */
  rotateKey?: {
    /** Seconds for which the previous key stays valid. */
    graceSecs: number;
    json: boolean;
  };
}

/** The command line is invalid. The message says how to correct it. */
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
 * Parses the command line.
 * @param argv the arguments after `muster agent`
 * @throws UsageError
 */
export function parseArguments(argv: readonly string[]): AgentArguments | 'help' | 'version' {
  const { values, positionals } = parse(argv);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const logFormat = values['log-format'];
  if (logFormat !== 'json' && logFormat !== 'text') throw new UsageError('--log-format must be json or text');
  const logLevel = levels.find((level) => level === values['log-level']);
  if (logLevel === undefined) throw new UsageError(`--log-level must be one of ${levels.join(', ')}`);
  if (values.hostname !== undefined && !/^[\x21-\x7e]{1,253}$/.test(values.hostname))
    throw new UsageError('--hostname must be 1 to 253 printable characters without spaces');
  if (values['data-dir'] === '') throw new UsageError('--data-dir must not be empty');
  const [verb, ...others] = positionals;
  const rotates = verb === 'rotate-key';
  if (rotates && others.length > 0) throw new UsageError(`unexpected argument "${others[0]}"`);
  for (const flag of ['at-once', 'former-good-for', 'json'] as const)
    if (!rotates && values[flag]) throw new UsageError(`--${flag} requires rotate-key`);
  if (rotates && (values.save || values.token !== undefined || values['orchestrator-key'] !== undefined))
    throw new UsageError('rotate-key cannot be combined with --orchestrator-key, --token, or --save');
  const connect = rotates ? null : parseConnect(positionals, values['orchestrator-key'], values.token);
  if (values.save && connect === null)
    throw new UsageError('--save requires an address: muster agent connect HOST:PORT … --save');
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

const defaultGraceSecs = 86_400;
const secondsOf = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

function graceSecs(atOnce: boolean, goodFor: string | undefined): number {
  if (atOnce && goodFor !== undefined) throw new UsageError('--at-once cannot be combined with --former-good-for');
  if (atOnce) return 0;
  if (goodFor === undefined) return defaultGraceSecs;
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(goodFor) ?? [];
  const grace = Number(count) * secondsOf[(unit ?? 's') as keyof typeof secondsOf];
  if (unit === undefined || grace > keyStatementLimits.longestGraceSecs)
    throw new UsageError(
      `"${goodFor}" is not a time for --former-good-for; use a time such as 90m, 24h, or 7d, at most 30d`,
    );
  return grace;
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Removes Node's advice for programmers ("To specify a positional …"), which follows the first sentence.
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
      throw new UsageError('--orchestrator-key and --token require an address: muster agent connect HOST:PORT …');
    return null;
  }
  if (verb !== 'connect')
    throw new UsageError(
      `unknown command "${verb}"; did you mean "connect HOST:PORT"? To manage agents: muster agents --help`,
    );
  if (address === undefined) throw new UsageError('connect requires an address: muster agent connect HOST:PORT');
  if (rest.length > 0) throw new UsageError(`unexpected argument "${rest[0]}"`);
  if (key !== undefined && !/^[0-9a-fA-F]{64}$/.test(key))
    throw new UsageError('--orchestrator-key must be 64 hexadecimal digits; "muster agents enroll" prints it');
  if (token !== undefined && (token === '' || token.length > 128))
    throw new UsageError('--token must be 1 to 128 characters');
  return { ...parseAddress(address), orchestratorKey: key?.toLowerCase() ?? null, token: token ?? null };
}

function parseAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port < 1 || port > 65_535)
    throw new UsageError(`"${address}" is not HOST:PORT, such as muster.example:4747 or [2001:db8::1]:4747`);
  return { host: (match[1] ?? match[2])!, port };
}
