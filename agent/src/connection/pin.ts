import { join } from 'node:path';
import { type AgentAddress, distinctAddresses, parseAgentAddress } from '@muster/protocol/agent-address';
import type { PinSource } from '@muster/protocol/wire';
import { readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';
import { rotated } from './dial.ts';

/** The orchestrator that this agent belongs to, as stored in the data directory. */
export interface KnownOrchestrator {
  host: string;
  port: number;
  /** The pinned key in hexadecimal; null until the first link. */
  orchestrator_key: string | null;
  /** The enrollment token, until it is used. */
  token: string | null;
  /** Further addresses, as HOST:PORT, that the orchestrator named in the last welcome. */
  addresses: readonly string[];
}

/** Target from the command line. */
export interface ConnectOrder {
  host: string;
  port: number;
  orchestratorKey: string | null;
  token: string | null;
}

export interface Target extends KnownOrchestrator {
  pinSource: PinSource;
  /** The previously pinned key that the configured key replaces, for the log; null if no key is replaced. */
  replacedKey: string | null;
}

/**
 * Chooses the orchestrator to connect to. The expected key is the one from the command line, otherwise the pinned key,
 * otherwise any key on the first connection.
 * @param known content of the data directory
 * @returns null if no address is known
 */
export function chooseTarget(known: KnownOrchestrator | null, order: ConnectOrder | null): Target | null {
  const address = order ?? known;
  if (address === null) return null;
  const flag = order?.orchestratorKey ?? null;
  const pinned = known?.orchestrator_key ?? null;
  const isReplaced = flag !== null && pinned !== null && flag !== pinned;
  const isKnown = !isReplaced && known?.host === address.host && known.port === address.port;
  return {
    host: address.host,
    port: address.port,
    orchestrator_key: flag ?? pinned,
    token: order?.token ?? known?.token ?? null,
    // The addresses are those of the former orchestrator if the key was replaced.
    addresses: isKnown ? known.addresses : [],
    pinSource: flag !== null ? 'flag' : pinned !== null ? 'pinned' : 'first_use',
    replacedKey: isReplaced ? pinned : null,
  };
}

/**
 * Returns the addresses of an orchestrator, each once: the configured one, and those that it named.
 * @param turn index of the first address to return, modulo their number
 */
export function addressesOf(
  known: Pick<KnownOrchestrator, 'host' | 'port' | 'addresses'>,
  turn: number,
): AgentAddress[] {
  return rotated(distinctAddresses([known, ...known.addresses.map(parseAgentAddress)]), turn);
}

export class OrchestratorFile {
  private readonly path: string;
  private written: string | null = null;

  constructor(dataDir: string) {
    this.path = join(dataDir, 'orchestrator.json');
  }

  /**
   * Reads the file.
   * @returns null if the file does not exist
   * @throws Error if the content was not written by the agent
   */
  read(): KnownOrchestrator | null {
    const text = readPrivateFile(this.path);
    if (text === null) return null;
    this.written = text;
    try {
      // Earlier releases wrote no `addresses`.
      const parsed = { addresses: [], ...JSON.parse(text) } as KnownOrchestrator;
      const { host, port, orchestrator_key, token, addresses } = parsed;
      const isKey = orchestrator_key === null || /^[0-9a-f]{64}$/.test(orchestrator_key);
      const areAddresses = Array.isArray(addresses) && addresses.every((one) => parseAgentAddress(one) !== null);
      const isToken = token === null || typeof token === 'string';
      if (typeof host === 'string' && Number.isInteger(port) && isKey && isToken && areAddresses)
        return { host, port, orchestrator_key, token, addresses };
    } catch {
      // The text is not JSON; the error below reports it.
    }
    throw new Error(
      `${this.path} is damaged; remove it and connect again: muster agent connect HOST:PORT --orchestrator-key HEX`,
    );
  }

  /** Writes the file if its content changes. */
  write(known: KnownOrchestrator): void {
    const { host, port, orchestrator_key, token, addresses } = known;
    const text = `${JSON.stringify({ host, port, orchestrator_key, token, addresses })}\n`;
    if (text === this.written) return;
    writePrivateFile(this.path, text, 'replace');
    this.written = text;
  }
}
