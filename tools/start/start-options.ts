import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { suggestion } from '@muster/protocol/nearest';

export interface StartOptions {
  apiPort: number;
  agentHost: string;
  agentPort: number;
  dataDir: string;
  /** Name of this machine's agent; null to derive it from the hostname. */
  name: string | null;
}

/** Stored in a separate file, because start.sh prints it before Node and the packages are installed. */
export const startHelp = readFileSync(new URL('start-help.txt', import.meta.url), 'utf8');

/** An invalid command line. The message is one line with the reason and the remedy. */
export class StartUsageError extends Error {}

const flags = {
  'api-port': { type: 'string' },
  'agent-host': { type: 'string' },
  'agent-port': { type: 'string' },
  'data-dir': { type: 'string' },
  name: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/**
 * Parses the arguments of `npm start --`.
 * @returns null for a request for help
 * @throws StartUsageError if the arguments are invalid
 */
export function readStartOptions(args: readonly string[], env: NodeJS.ProcessEnv): StartOptions | null {
  const values = parse(args);
  if (values.help) return null;
  for (const [name, value] of Object.entries(values))
    if (value === '') throw new StartUsageError(`--${name} is empty. To see the usage: npm start -- --help`);
  return {
    apiPort: port('--api-port', values['api-port'] ?? (env.MUSTER_API_PORT || '4748')),
    agentHost: values['agent-host'] ?? (env.MUSTER_AGENT_HOST || '127.0.0.1'),
    agentPort: port('--agent-port', values['agent-port'] ?? (env.MUSTER_AGENT_PORT || '4747')),
    dataDir: values['data-dir'] ?? 'data',
    name: values.name ?? null,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: flags }).values;
  } catch (error) {
    const typed =
      args
        .find((arg) => arg.startsWith('--'))
        ?.slice(2)
        .split('=')[0] ?? '';
    const suggested = typed === '' || Object.hasOwn(flags, typed) ? '' : suggestion(typed, Object.keys(flags));
    // Only the first sentence is for users; the remaining sentences are for programmers.
    throw new StartUsageError(`${(error as Error).message.split('. ')[0]}${suggested} See: npm start -- --help`);
  }
}

function port(flag: string, text: string): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (number < 0 || number > 65_535)
    throw new StartUsageError(`${flag} is ${JSON.stringify(text)}: a port is a whole number from 0 to 65535`);
  return number;
}
