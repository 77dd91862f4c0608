import type { LiveListener, LiveWire } from '../../src/bus/live-wire.ts';
import { decodeFrame, type FrameKind } from '../../src/domain/terminals/relay/relay-frames.ts';

/** Delivers frames of relayed terminals to the other replica of the test immediately. */
export class MemoryWire implements LiveWire {
  isConnected = true;
  other: MemoryWire | null = null;
  readonly sent: FrameKind[] = [];
  /** Kinds of the next frames to drop, in this order, one frame for each entry. */
  readonly loses: FrameKind[] = [];
  listener: LiveListener = { received: () => {}, lost: () => {} };
  readonly #own: string;

  constructor(own: string) {
    this.#own = own;
  }

  /** Creates the wires between two replicas. */
  static pair(one: string, two: string): readonly [MemoryWire, MemoryWire] {
    const wires = [new MemoryWire(one), new MemoryWire(two)] as const;
    wires[0].other = wires[1];
    wires[1].other = wires[0];
    return wires;
  }

  send(_to: string, bytes: Buffer): boolean {
    if (!this.isConnected) return false;
    const { kind } = decodeFrame(bytes)!;
    this.sent.push(kind);
    if (this.loses[0] === kind) this.loses.shift();
    else this.other?.listener.received(this.#own, bytes);
    return true;
  }

  listen(listener: LiveListener): void {
    this.listener = listener;
  }

  async close(): Promise<void> {}
}
