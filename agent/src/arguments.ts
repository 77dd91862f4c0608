import { parseArgs } from 'node:util';
import { type AgentAddress, parseAgentAddress } from '@muster/protocol/agent-address';
import { keyStatementLimits } from '@muster/protocol/wire';
import type { LogFormat } from './log.ts';

export const help = `Usage: muster agent [options]
       muster agent connect HOST:PORT [options]
       muster agent rotate-key [options]

Keeps this machine in the state that its orchestrator declares. The first
"connect" saves the address; later starts need no arguments.

Without a saved address, it listens on UDP port 4747 for the announcement of an
orchestrator (muster discover), trusts the first one, and waits for approval. To
prevent that, set "discovery: { enabled: false }" in its configuration.

To manage agents from an operator's machine: muster agents --help

Commands:
  connect HOST:PORT       Connect to the orchestrator's port for agents (4747)
  rotate-key              Replace the key of this agent; its identity stays

Options of connect:
  --orchestrator-key HEX  Its public key; without it, the first key is trusted
  --token T               Enrollment token; - reads it from standard input
  --save                  Only save these settings for the service

Prefer the variable MUSTER_TOKEN to --token, because other users can see
arguments. "muster agents enroll" prints the token.

Options of rotate-key:
  --at-once               Make all former keys invalid with the new one
  --former-good-for TIME  Validity of the former key, such as 24h; at most 30d
  --json                  Print the result as JSON

It waits until the orchestrator has accepted the key. The former key stays valid
for 24h by default. Exit codes: 0: in force; 1: refused, nothing has changed;
5: waiting for the agent to run or to connect.

Options:
  --config FILE           YAML file; read again when it changes
  --data-dir D            Key, journal, and snapshots (/var/lib/muster-agent)
  --hostname H            Name to report (default: this machine's)
  --facts-dir D           Files and programs that add attributes
  --log-format FORMAT     Format of the log: text (default) or json
  --log-level LEVEL       Level of the log: debug, info, warn, or error
  --check-config FILE     Print the errors of a configuration file and exit
  --print-schema          Print its JSON Schema, for editors
  -h, --help              Print this text
  --version               Print the version

The configuration has remote_terminal, metrics, and discovery. --check-config
exits with 2 if the file has errors. Facts are in facts.d of the data directory
by default.

Examples:
  $ MUSTER_TOKEN=mt_… muster agent connect muster.example:4747 \\
      --orchestrator-key 3f…c1
  $ muster agent rotate-key --at-once
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

/** The command line is invalid. The message explains how to correct it. */
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
    // Removes Node's advice for programmers ("To specify a positional …") after the first sentence.
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

function parseAddress(address: string): AgentAddress {
  const parsed = parseAgentAddress(address);
  if (parsed === null)
    throw new UsageError(`"${address}" is not HOST:PORT, such as muster.example:4747 or [2001:db8::1]:4747`);
  return parsed;
}
