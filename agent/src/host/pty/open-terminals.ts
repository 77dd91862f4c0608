import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { identityOf } from '../../../../lib/src/process-identity.ts';
import type { ProcessSession } from '../processes/process-session.ts';

/** A terminal as the next process of this agent would have to find it. */
export interface OpenTerminal {
  readonly session: ProcessSession;
  /** The scope it was begun in; null: none. */
  readonly scope: string | null;
}

const fileName = /^open-terminal\.(\d+)\.(\d*)\.([\w-]*)\.((?:muster-terminal-[0-9a-f]+\.scope)?)$/;

/**
 * Which terminals are open, for the case that this process is killed: the kernel hangs them up then, and what ignores that
 * would run on for ever. A file for each, whose name says it all, as the lock of the directory has it.
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

  /** Those that an earlier process left open. Of an earlier boot nothing can be left. */
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
      // A disk that takes nothing: after the next start it is found that nothing of that terminal runs.
    }
  }

  #pathOf({ session: { pid, startTicks, bootId }, scope }: OpenTerminal): string {
    return join(this.#directory, `open-terminal.${pid}.${startTicks}.${bootId}.${scope ?? ''}`);
  }
}
