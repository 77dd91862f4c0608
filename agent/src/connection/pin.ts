import { join } from 'node:path';
import type { PinSource } from '@muster/protocol/wire';
import { readPrivateFile, writePrivateFile } from '../host/files/private-file.ts';

/** Which orchestrator this agent belongs to, as it is kept in the data directory. */
export interface KnownOrchestrator {
  host: string;
  port: number;
  /** Hex of the pinned key; null before the first link. */
  orchestrator_key: string | null;
  /** The enrolment token, until it has done its work. */
  token: string | null;
}

/** What was said on the command line. */
export interface ConnectOrder {
  host: string;
  port: number;
  orchestratorKey: string | null;
  token: string | null;
}

export interface Target extends KnownOrchestrator {
  pinSource: PinSource;
  /** Said at the start, when what was pinned before no longer holds. */
  replacedKey: string | null;
}

/**
 * Where to connect and which key to expect there, best source first: the flag, a key pinned before, first use.
 * @param known what the data directory holds
 * @returns null when nobody ever said where the orchestrator is
 */
export function chooseTarget(known: KnownOrchestrator | null, order: ConnectOrder | null): Target | null {
  const address = order ?? known;
  if (address === null) return null;
  const flag = order?.orchestratorKey ?? null;
  const pinned = known?.orchestrator_key ?? null;
  return {
    host: address.host,
    port: address.port,
    orchestrator_key: flag ?? pinned,
    token: order?.token ?? known?.token ?? null,
    pinSource: flag !== null ? 'flag' : pinned !== null ? 'pinned' : 'first_use',
    replacedKey: flag !== null && pinned !== null && flag !== pinned ? pinned : null,
  };
}

/** The file in the data directory that remembers the orchestrator. */
export class OrchestratorFile {
  private readonly path: string;
  private written: string | null = null;

  constructor(dataDir: string) {
    this.path = join(dataDir, 'orchestrator.json');
  }

  /**
   * @returns null when there is none yet
   * @throws Error when it is not what this agent wrote
   */
  read(): KnownOrchestrator | null {
    const text = readPrivateFile(this.path);
    if (text === null) return null;
    this.written = text;
    try {
      const { host, port, orchestrator_key, token } = JSON.parse(text) as KnownOrchestrator;
      const isKey = orchestrator_key === null || /^[0-9a-f]{64}$/.test(orchestrator_key);
      if (typeof host === 'string' && Number.isInteger(port) && isKey && (token === null || typeof token === 'string'))
        return { host, port, orchestrator_key, token };
    } catch {
      // Said below.
    }
    throw new Error(
      `${this.path} is damaged; remove it and say again where the orchestrator is: muster agent connect HOST:PORT --orchestrator-key HEX`,
    );
  }

  /** Writes what changed; nothing when nothing did. */
  write(known: KnownOrchestrator): void {
    const { host, port, orchestrator_key, token } = known;
    const text = `${JSON.stringify({ host, port, orchestrator_key, token })}\n`;
    if (text === this.written) return;
    writePrivateFile(this.path, text, 'replace');
    this.written = text;
  }
}
