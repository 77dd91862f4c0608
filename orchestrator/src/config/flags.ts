import { type ParseArgsConfig, parseArgs } from 'node:util';
import { closest } from 'fastest-levenshtein';
import { ConfigError } from './faults.ts';

const flags = {
  config: { type: 'string' },
  'data-dir': { type: 'string' },
  'api-host': { type: 'string' },
  'api-port': { type: 'string' },
  'agent-host': { type: 'string' },
  'agent-port': { type: 'string' },
  'advertised-host': { type: 'string' },
  'bootstrap-key': { type: 'string' },
  'bootstrap-username': { type: 'string' },
  'no-tls': { type: 'boolean' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'database-url': { type: 'string' },
  'database-url-file': { type: 'string' },
  'log-format': { type: 'string' },
  'log-level': { type: 'string' },
  'check-config': { type: 'string' },
  'print-schema': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const usage = `Usage: muster orchestrator [options]

Runs the orchestrator: the API for operators and the port that agents dial.
Where it is installed as a service, "muster orchestrator init" makes you its
first admin. "muster orchestrator share" and "join" give its keys to a replica.

  --config FILE              YAML file with the settings in docs/operations.md
  --data-dir DIR             Directory of the keys and the database
  --api-host HOST            Address of the API (127.0.0.1)
  --api-port PORT            Port of the API (4748; 0 picks a free one)
  --agent-host HOST          Address of the agents' port (all)
  --agent-port PORT          Port of the agents (4747; 0 picks a free one)
  --advertised-host HOST     Name or address that agents and operators use
  --bootstrap-key HEX        Public key of the first admin; ignored later
  --bootstrap-username NAME  Name of the first admin; ignored later
  --no-tls                   Plain HTTP for the API, behind a TLS proxy
  --tls-cert FILE            Certificate of the API; a generated one by default
  --tls-key FILE             Its private key
  --database-url-file FILE   File with the URL of a PostgreSQL database
  --database-url URL         The URL itself; process lists show its password
  --log-format FORMAT        Format of the log: text or json
  --log-level LEVEL          Level of the log: debug, info, warn, or error
  --check-config FILE        Print the faults of a configuration file and exit
  --print-schema             Print its JSON Schema, for editors

Every option is also a variable: MUSTER_API_PORT, MUSTER_DATA_DIR, …
--check-config exits with 2 if the file has faults.

Example:
  $ muster orchestrator --data-dir ./data --bootstrap-key 3f…9a \\
      --bootstrap-username ada
`;

/** Parses the options. @throws ConfigError if an option is unknown, with a suggestion */
export function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: flags, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new ConfigError(`${(error as Error).message}${suggestion(args)}`);
  }
}

/** Validates the value of the option `--name`. @throws ConfigError if it is not allowed */
export function oneOf<const T extends string>(name: string, given: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === given);
  if (found === undefined) throw new ConfigError(`--${name} must be ${allowed.join(' or ')}, not ${given}`);
  return found;
}

function suggestion(args: readonly string[]): string {
  const unknown = args.find((arg) => arg.startsWith('--') && !((arg.slice(2).split('=')[0] as string) in flags));
  return unknown === undefined ? '' : `\nDid you mean --${closest(unknown.slice(2), Object.keys(flags))}?`;
}

/** Returns the positional arguments, without options and their values. */
export function wordsOf(args: readonly string[]): { words: string[]; rest: string[] } {
  const { tokens } = parseArgs({
    args: [...args],
    options: flags,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const at = new Map(tokens.flatMap((token) => (token.kind === 'positional' ? [[token.index, token.value]] : [])));
  return { words: [...at.values()], rest: args.filter((_, index) => !at.has(index)) };
}

/** Separates a command's options, with their values, from the orchestrator's options. */
export function optionsOf(args: readonly string[], options: NonNullable<ParseArgsConfig['options']>) {
  const { tokens, values } = parseArgs({
    args: [...args],
    options: { ...flags, ...options },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const taken = new Set<number>();
  let fault: string | null = null;
  for (const token of tokens) {
    if (token.kind !== 'option' || !(token.name in options)) continue;
    taken.add(token.index);
    if (options[token.name]?.type !== 'string') continue;
    if (token.value === undefined) fault = `${token.rawName} needs a value`;
    else if (!token.inlineValue) taken.add(token.index + 1);
  }
  const own = Object.fromEntries(Object.entries(values).filter(([name]) => name in options));
  return { values: own, fault, rest: args.filter((_, index) => !taken.has(index)) };
}
