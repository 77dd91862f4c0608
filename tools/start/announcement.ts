import { join } from 'node:path';
import type { Agent } from '@muster/protocol/http';

/** The programs that `npm start` runs. */
interface Running {
  apiUrl: string;
  agentPort: number;
  /** Fingerprint of the API certificate; null if the certificate is not self-signed. */
  fingerprint: string | null;
  /** This machine's agent. */
  agent: Pick<Agent, 'name' | 'status'>;
  /** Suffix to add to commands for this orchestrator. */
  suffix: string;
  /** The user who runs the agent; null for root. */
  user: string | null;
  operator: string;
  /** Path of the operator key if this start created it. */
  newKey: string | null;
  dataDir: string;
  agentHost: string;
}

const isLoopback = (host: string): boolean => /^(127\..*|::1|localhost)$/.test(host);

/**
 * Returns the first text that `npm start` prints: the running programs and the next steps. At most 80 columns wide,
 * unless a name or path is longer.
 */
export function announcement(running: Running): string[] {
  const { apiUrl, agentPort, fingerprint, agent, suffix, user, operator, newKey, dataDir, agentHost } = running;
  const isLocal = isLoopback(agentHost);
  const row = (name: string, ...[first, ...rest]: string[]) => [
    `  ${name.padEnd(13)}${first}`,
    ...rest.map((line) => `${' '.repeat(15)}${line}`),
  ];
  const half = Math.ceil((fingerprint ?? '').length / 2);
  return [
    'Muster is running.',
    '',
    ...row('console', `${apiUrl}/`),
    ...row(
      'agent',
      `${agent.name}: this machine, ${agent.status}`,
      ...(user === null ? [] : [`runs as ${user}, so it can change only what you can`]),
    ),
    ...row(
      'operator',
      `${operator}${newKey === null ? '' : ', with a new key:'}`,
      ...(newKey === null ? [] : [newKey]),
    ),
    ...row(
      'agent port',
      `${agentPort}${isLocal ? ', for this machine only' : ` of ${agentHost}`}`,
      ...(isLocal ? ['for other machines: npm start -- --agent-host 0.0.0.0'] : []),
    ),
    ...row('data', dataDir, `logs: ${join(dataDir, 'log')}`, `agent configuration: ${join(dataDir, 'agent.yml')}`),
    ...(fingerprint === null ? [] : row('certificate', fingerprint.slice(0, half), fingerprint.slice(half))),
    '',
    'Next, in another terminal, in this folder:',
    '',
    `  npx muster web-login${suffix}`,
    '',
    'It prints a link that signs you in to the console. Ctrl-C stops Muster.',
  ];
}
