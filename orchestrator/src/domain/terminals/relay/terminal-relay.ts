import { type ErrorCode, errorKinds } from '@muster/protocol';
import { z } from 'zod';
import type { LiveWire } from '../../../bus/live-wire.ts';
import type { Context } from '../../shared/context.ts';
import type { TerminalClient, TerminalConnectionEvents, TerminalNotice } from '../terminal-client.ts';
import type { TerminalMode } from '../terminal-tickets.ts';
import { decodeFrame, encodeFrame, type FrameKind } from './relay-frames.ts';
import { costOf, type RelayLoss, RelayStream } from './relay-stream.ts';

/**
 * Relays operators' connections to the replicas that hold their terminal sessions. When a relayed connection is lost,
 * the operator's connection is closed without a notice. Clients then attach again, and get the current screen.
 */

const sweepMs = 1_000;

const side = z.number().int().min(1).max(1_000);
const resize = z.object({ type: z.literal('resize'), cols: side, rows: side });
const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorKinds, code);
const notice: z.ZodType<TerminalNotice> = z.discriminatedUnion('type', [
  resize,
  z.object({ type: z.literal('exit'), code: z.number().nullable(), signal: z.string().nullable() }),
  z.object({ type: z.literal('error'), code: z.string().refine(isErrorCode), message: z.string() }),
]);

/** The end of a relayed connection at the replica that holds the session. */
export interface RelayedClient {
  readonly client: TerminalClient;
  readonly isOpen: boolean;
  /**
   * Passes input to the session while the connection is open.
   * @param events null to end the connection without notice
   */
  bind(events: TerminalConnectionEvents | null): void;
}

interface Open {
  readonly peer: string;
  readonly stream: RelayStream;
}

export class TerminalRelay {
  readonly #context: Pick<Context, 'randomBytes' | 'steadyNow' | 'log'>;
  readonly #wire: LiveWire;
  readonly #after: (ms: number, act: () => void) => () => void;
  readonly #open = new Map<string, Open>();
  #cancelTimer: (() => void) | null = null;

  constructor(
    context: Pick<Context, 'randomBytes' | 'steadyNow' | 'log'>,
    wire: LiveWire,
    after: (ms: number, act: () => void) => () => void,
  ) {
    this.#context = context;
    this.#wire = wire;
    this.#after = after;
    wire.listen({
      received: (from, bytes) => {
        const frame = decodeFrame(bytes);
        const open = frame && this.#open.get(frame.connection);
        if (frame && open?.peer === from) this.#contain(frame.connection, open, () => open.stream.accept(frame));
      },
      lost: () => this.#each((stream) => stream.fail('unsent')),
    });
  }

  get isConnected(): boolean {
    return this.#wire.isConnected;
  }

  /**
   * Connects a client to a session on another replica.
   * @param peer incarnation of that replica
   * @param connect asks that replica to connect, and returns the mode; null if it refuses
   */
  async dial(
    peer: string,
    client: TerminalClient,
    connect: (connection: string) => Promise<TerminalMode | null>,
  ): Promise<TerminalConnectionEvents | null> {
    const connection = this.#context.randomBytes(16).toString('hex');
    let isFull = false;
    let isPaused = false;
    const readOrNot = () => (isFull || isPaused ? client.pause() : client.resume());
    const stream = this.#add(peer, connection, {
      received: (kind, content) => {
        const consumed = () => stream.consumed(costOf(content));
        if (kind === 'data') return client.show(content, consumed);
        consumed();
        if (kind === 'text') {
          const said = parsed(notice, content);
          if (said === null) stream.fail('excess');
          else client.notify(said);
        } else if (kind === 'close') client.close();
        else if (kind === 'cut') client.cut();
        else {
          isPaused = kind === 'pause';
          readOrNot();
        }
      },
      drained: () => {
        if (!isFull) return;
        isFull = false;
        readOrNot();
      },
      lost: () => client.cut(),
    });
    const leave = () => {
      stream.pushLast('close');
      this.#remove(connection);
    };
    const mode = await connect(connection).catch((error: unknown) => {
      leave();
      throw error;
    });
    if (mode === null) {
      this.#remove(connection);
      return null;
    }
    const sending = (push: () => void) => {
      push();
      isFull = stream.isWaiting;
      if (isFull) readOrNot();
    };
    return {
      mode,
      isRelayed: true,
      typed: (bytes) => sending(() => stream.push('data', bytes)),
      resized(cols, rows) {
        const content = Buffer.from(JSON.stringify({ type: 'resize', cols, rows }));
        sending(() => stream.pushSize(content));
      },
      left: leave,
    };
  }

  /** Accepts a client that is connected to another replica. @param connection ID that the other replica generated */
  accept(peer: string, connection: string): RelayedClient {
    let events: TerminalConnectionEvents | null = null;
    let isPaused = false;
    /** Cost of input that arrived while reading was paused. */
    let owed = 0;
    const leave = () => {
      this.#remove(connection);
      events?.left();
    };
    const stream = this.#add(peer, connection, {
      received: (kind, content) => {
        owed += costOf(content);
        if (!isPaused) release();
        if (kind === 'data') events?.typed(content);
        else if (kind === 'close' || kind === 'cut') leave();
        else {
          const size = kind === 'text' ? parsed(resize, content) : null;
          if (size === null) stream.fail('excess');
          else events?.resized(size.cols, size.rows);
        }
      },
      drained: () => {},
      lost: leave,
    });
    const release = () => {
      const cost = owed;
      owed = 0;
      stream.consumed(cost);
    };
    const client: TerminalClient = {
      show: (bytes, sent) => stream.push('data', bytes, sent),
      notify(one) {
        const content = Buffer.from(JSON.stringify(one));
        if (one.type === 'resize') stream.pushSize(content);
        else stream.push('text', content);
      },
      pause() {
        isPaused = true;
        stream.push('pause');
      },
      resume() {
        isPaused = false;
        stream.push('resume');
        release();
      },
      close: () => stream.push('close'),
      cut: () => stream.pushLast('cut'),
    };
    const isOpen = () => this.#open.get(connection)?.stream === stream;
    return {
      client,
      get isOpen() {
        return isOpen();
      },
      bind: (bound) => {
        events = bound;
        if (bound === null && isOpen()) this.#remove(connection);
      },
    };
  }

  #add(
    peer: string,
    connection: string,
    handlers: {
      received(kind: Exclude<FrameKind, 'credit' | 'alive'>, content: Buffer): void;
      drained(): void;
      lost(): void;
    },
  ): RelayStream {
    if (this.#open.has(connection)) throw new Error('the connection already exists');
    const { log, steadyNow } = this.#context;
    const stream = new RelayStream({
      ...handlers,
      connection,
      send: (frame) => this.#wire.send(peer, encodeFrame(frame)),
      monotonic: steadyNow,
      lost: (reason: RelayLoss) => {
        log.info({ connection, replica: peer, reason }, 'relayed connection to terminal lost');
        this.#open.delete(connection);
        handlers.lost();
      },
    });
    this.#open.set(connection, { peer, stream });
    this.#cancelTimer ??= this.#after(sweepMs, () => this.#sweep());
    return stream;
  }

  #remove(connection: string): void {
    this.#open.get(connection)?.stream.end();
    this.#open.delete(connection);
  }

  #each(act: (stream: RelayStream) => void): void {
    for (const [connection, open] of [...this.#open]) this.#contain(connection, open, () => act(open.stream));
  }

  /** Runs an action for a connection, and ends only this connection if it throws. */
  #contain(connection: string, open: Open, act: () => void): void {
    try {
      act();
    } catch (error) {
      const { log } = this.#context;
      log.error({ err: error, connection }, 'bug: failed to handle a relayed connection; ended it');
      // A connection that failed while it ended is no longer open.
      if (this.#open.get(connection) === open) this.#contain(connection, open, () => open.stream.fail('failed'));
    }
  }

  #sweep(): void {
    this.#cancelTimer = null;
    this.#each((stream) => stream.sweep());
    if (this.#open.size > 0) this.#cancelTimer = this.#after(sweepMs, () => this.#sweep());
  }
}

function parsed<T>(schema: z.ZodType<T>, content: Buffer): T | null {
  try {
    return schema.safeParse(JSON.parse(content.toString())).data ?? null;
  } catch {
    return null;
  }
}
