import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { TerminalRelay } from '../src/domain/terminal-relay.ts';
import { createTerminals } from '../src/domain/terminals.ts';
import { openTranscripts } from '../src/store/transcripts.ts';
import type { Domain } from './domain.ts';
import { scratchDirectory } from './scratch.ts';

/** A relay whose agents offer terminals, with no shell behind them. */
export class MemoryRelay implements TerminalRelay {
  readonly opened: Parameters<TerminalRelay['open']>[0][] = [];
  readonly closed: string[] = [];
  /** What happens while the shell is being started. */
  starting: () => Promise<void> = async () => {};

  async open(terminal: Parameters<TerminalRelay['open']>[0]): Promise<void> {
    await this.starting();
    this.opened.push(terminal);
  }

  close(sessionId: string): void {
    this.closed.push(sessionId);
  }

  viewers(sessionId: string): number {
    return this.opened.some((terminal) => terminal.session_id === sessionId) ? 1 : 0;
  }
}

/** Call while a suite is being defined. @returns opens terminals over a domain, with transcripts in a new directory */
export function terminalsFixture() {
  const root = scratchDirectory('muster-terminals-');
  let count = 0;
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return async ({ context }: Domain, relay: TerminalRelay = new MemoryRelay()) => {
    const directory = join(root, String(++count));
    const transcripts = await openTranscripts(directory);
    return { directory, transcripts, relay, terminals: createTerminals(context, transcripts, relay) };
  };
}
