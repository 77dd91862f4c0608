import type { OperationMessage, OutputProgress, Report } from '@muster/protocol/wire';
import type { AcceptOutcome, Engine, OpenOperation, ReportSpool, SpoolEntry } from '../src/converge/engine.ts';
import type { ContentPart, ContentRequests } from '../src/converge/wanted-contents.ts';

/** An in-memory spool that a connection can use like the real one. */
export class MemorySpool implements ReportSpool {
  entries: SpoolEntry[] = [];
  private last = 0;

  add(reports: Report[]): number {
    const bytes = Buffer.byteLength(JSON.stringify(reports));
    this.entries.push({ seq: ++this.last, reports, bytes });
    return this.last;
  }

  pending(afterSeq: number): Iterable<SpoolEntry> {
    return this.entries.filter((entry) => entry.seq > afterSeq);
  }

  acknowledge(seq: number): void {
    this.entries = this.entries.filter((entry) => entry.seq > seq);
  }

  lastSeq(): number {
    return this.last;
  }
}

/** Accepts operations and records all calls, but executes nothing. */
export class MemoryEngine implements Engine {
  readonly spool = new MemorySpool();
  readonly received: string[] = [];
  /** Output that the next calls to `output.take` return, in order. */
  printed: OutputProgress[] = [];
  readonly output = { take: () => this.printed.shift() ?? null };
  /** Parts of content that the next calls to `contents.next` return, in order. */
  parts: ContentPart[] = [];
  readonly contents: ContentRequests = {
    next: () => this.parts.shift() ?? null,
    received: (request, bytes) => this.received.push(`content ${request} ${Buffer.from(bytes)}`) > 0,
    refused: (request, message) => this.received.push(`content ${request} refused: ${message}`) > 0,
    unlinked: () => {},
  };
  open: OpenOperation[] = [];
  /** A promise that `accept` waits for. */
  gate: Promise<void> = Promise.resolve();

  async start(): Promise<void> {}

  async accept(operation: OperationMessage): Promise<AcceptOutcome> {
    await this.gate;
    this.received.push(`accept ${operation.operation_id}`);
    return 'accepted';
  }

  cancel(operationId: string): void {
    this.received.push(`cancel ${operationId}`);
  }

  openOperations(): OpenOperation[] {
    return this.open;
  }

  settle(operationIds: readonly string[]): void {
    this.received.push(`settle ${operationIds.join()}`);
  }

  busy(): boolean {
    return false;
  }

  applied(): ReturnType<Engine['applied']> {
    return { applies: 0, watched: new Map() };
  }

  async observe(): ReturnType<Engine['observe']> {
    return null;
  }

  async halt(): Promise<void> {}

  async stop(): Promise<void> {}
}
