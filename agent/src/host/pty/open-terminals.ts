import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { identityOf } from '../../../../lib/src/process-identity.ts';
import type { ProcessSession } from '../processes/process-session.ts';

/** Identifies a terminal for the next process of this agent. */
export interface OpenTerminal {
  readonly session: ProcessSession;
  /** The scope in which the terminal was started; null if it has none. */
  readonly scope: string | null;
}

const fileName = /^open-terminal\.(\d+)\.(\d*)\.([\w-]*)\.((?:muster-terminal-[0-9a-f]+\.scope)?)$/;

/**
 * Records open terminals on disk, so that the next agent process can kill their processes if this one is killed. In
 * that case, the kernel sends only SIGHUP, which processes may ignore. Each terminal has an empty file whose name
 * contains all data.
 */
export class OpenTerminals {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** @throws Error */
  add(terminal: OpenTerminal): void {
    closeSync(openSync(this.#pathOf(terminal), 'w', 0o600));
  }

  remove(terminal: OpenTerminal): void {
    this.#removeFile(this.#pathOf(terminal));
  }

  /** Returns the terminals that an earlier process left open. Removes records from earlier boots. */
  left(): OpenTerminal[] {
    const { bootId } = identityOf(process.pid);
    const left: OpenTerminal[] = [];
    for (const name of readdirSync(this.#directory)) {
      const [, pid, startTicks = '', boot = '', scope = ''] = fileName.exec(name) ?? [];
      if (pid === undefined) continue;
      const within = scope === '' ? null : scope;
      if (boot === bootId) left.push({ session: { pid: Number(pid), startTicks, bootId, within }, scope: within });
      else this.#removeFile(join(this.#directory, name));
    }
    return left;
  }

  #removeFile(path: string): void {
    try {
      rmSync(path, { force: true });
    } catch {
      // The record could not be deleted. This is harmless, because none of the terminal's processes remain.
    }
  }

  #pathOf({ session: { pid, startTicks, bootId }, scope }: OpenTerminal): string {
    return join(this.#directory, `open-terminal.${pid}.${startTicks}.${bootId}.${scope ?? ''}`);
  }
}
