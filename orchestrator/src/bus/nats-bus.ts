import { hash } from 'node:crypto';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { AskDesk, unknownSender } from './ask-desk.ts';
import { type Ask, type Asked, AskFailed, type AskOptions } from './asks.ts';
import type { Bus, Hint, HintListener } from './bus.ts';
import { HintDelivery } from './in-process.ts';
import { LossNotices } from './loss-notices.ts';
import { decode, encode, hintsIn, type Message, toWire } from './messages.ts';
import { NatsConnection, type NatsSettings } from './nats-connection.ts';
import { type Channel, PeerNumbers } from './peer-numbers.ts';
import { everyone, maxPlainBytes, type Opened, Seal, type SealFault } from './sealing.ts';

/**
 * The bus of a replica: delivers hints here and, with core NATS, to all other replicas. NATS stores nothing, so
 * messages to a replica without a connection are lost. Each replica numbers its messages, so the other replicas notice
 * lost messages, publish `hints_lost`, and read the rows.
 */

/** Milliseconds for which hints are collected into one message. */
const gatherMs = 5;
/** Number of characters at which a message is sent immediately. A character has at most 3 bytes in UTF-8. */
const fullLength = Math.floor(maxPlainBytes / 4);
/** Milliseconds without a message after which a replica counts as unheard. */
const unheardMs = 10_000;
/** Maximum milliseconds between messages to the other replicas, so that they notice lost messages. */
const beatMs = 1_000;

export interface NatsBusParts {
  readonly settings: NatsSettings;
  /** A secret of 32 bytes that only the replicas of the fleet have. */
  readonly secret: Buffer;
  /** Identifies the fleet among those that use the same NATS server. Not secret. */
  readonly fleet: string;
  /** Incarnation of this process. */
  readonly own: string;
  /** Its `now` is the time of the database server. */
  readonly clock: Clock;
  readonly random: () => number;
  readonly newNonce: () => string;
  readonly log: Log;
  readonly onListenerError: (error: unknown, hint: Hint) => void;
}

/** Why a received message is ignored. */
export type IgnoredReason = SealFault | 'repeated' | 'unknown_sender' | 'unknown_message';

export interface NatsBusState {
  readonly isConnected: boolean;
  readonly sent: number;
  readonly received: number;
  /** Number of messages that could not be passed to NATS. */
  readonly dropped: number;
  /** Number of times that messages from another replica were missing. */
  readonly gaps: number;
  readonly ignored: Readonly<Record<IgnoredReason, number>>;
  /** Names of the live replicas from which no message has arrived for ten seconds. */
  readonly unheard: readonly string[];
}

/** Another live replica. */
interface Expected {
  readonly incarnation: string;
  readonly name: string;
}

export class NatsBus implements Bus {
  readonly #parts: NatsBusParts;
  readonly #delivery: HintDelivery;
  readonly #seal: Seal;
  readonly #peers = new PeerNumbers();
  readonly #losses: LossNotices;
  readonly #asks: AskDesk;
  readonly #connection: NatsConnection;
  readonly #subject: (to: string) => string;
  /** The collected hints as JSON, without duplicates. */
  readonly #batch = new Set<string>();
  #batchLength = 0;
  #cancelBatch = () => {};
  #cancelBeat = () => {};
  /** Time of the last message to all replicas that was passed to NATS, in monotonic milliseconds. */
  #spokeAt = Number.NEGATIVE_INFINITY;
  #closed = false;
  #expected: () => Iterable<Expected> = () => [];
  /** The live replicas whose messages do not arrive, and since when, in monotonic milliseconds. */
  #unheard = new Map<string, { readonly name: string; readonly since: number }>();
  readonly #counts = { sent: 0, received: 0, dropped: 0, gaps: 0 };
  readonly #ignored: Record<IgnoredReason, number> = {
    ...{ oversized: 0, truncated: 0, unknown_format: 0, forged: 0, repeated: 0, unknown_sender: 0, unknown_message: 0 },
  };

  /** @throws Error if a file that the settings name cannot be read */
  constructor(parts: NatsBusParts) {
    const { secret, own, fleet, clock, log, settings, random, newNonce } = parts;
    this.#parts = parts;
    this.#delivery = new HintDelivery(parts.onListenerError);
    this.#losses = new LossNotices(clock, () => this.#delivery.add({ type: 'hints_lost' }, 'other'));
    this.#seal = new Seal(secret, own);
    this.#subject = (to) => `muster.${fleet}.${to === everyone ? 'all' : to}`;
    this.#asks = new AskDesk({ clock, log, newId: newNonce, send: (to, message) => this.#sendTo(to, message) });
    this.#connection = new NatsConnection({
      ...{ settings, clock, random, log },
      subjects: { all: this.#subject(everyone), direct: this.#subject(own) },
      connected: () => this.#send(everyone, { type: 'beat' }),
      lost: () => this.#lost(),
      received: (channel, bytes) => this.#receive(channel, bytes),
    });
    this.#connection.start();
    this.#scheduleBeat();
  }

  get state(): NatsBusState {
    const now = this.#parts.clock.monotonic();
    const unheard = [...this.#unheard.values()].filter(({ since }) => now - since >= unheardMs).map(({ name }) => name);
    return { isConnected: this.#connection.isConnected, ...this.#counts, ignored: this.#ignored, unheard };
  }

  /** Reports whether this process accepts the messages of another process. */
  hears(incarnation: string): boolean {
    return this.#peers.knows(incarnation);
  }

  /** Sets the function that returns the other live replicas, whose messages should arrive. */
  expect(replicas: () => Iterable<Expected>): void {
    this.#expected = replicas;
  }

  publish(hint: Hint): void {
    if (this.#closed) return;
    this.#delivery.add(hint, 'own');
    const wire = toWire(hint);
    if (wire === null) return;
    if (this.#batch.size === 0) this.#cancelBatch = this.#parts.clock.after(gatherMs, () => this.#sendBatch());
    const text = JSON.stringify(wire);
    if (this.#batch.has(text)) return;
    this.#batch.add(text);
    this.#batchLength += text.length + 1;
    if (this.#batchLength >= fullLength) this.#sendBatch();
  }

  publishHere(hint: Hint): void {
    this.#delivery.add(hint, 'own');
  }

  delivered(): Promise<void> {
    return this.#delivery.delivered();
  }

  subscribe(listener: HintListener): () => void {
    return this.#delivery.subscribe(listener);
  }

  async ask<Question, Answer>(
    to: string,
    ask: Ask<Question, Answer>,
    question: Question,
    options: AskOptions,
  ): Promise<Answer> {
    // An answer from a process whose message numbers are unknown would be ignored.
    if (this.#closed || !this.hears(to)) throw new AskFailed('unreachable');
    return this.#asks.ask(to, ask, question, options);
  }

  answer<Question, Answer>(
    ask: Ask<Question, Answer>,
    handler: (question: Question, asked: Asked) => Promise<Answer>,
  ): () => void {
    return this.#asks.answer(ask, handler);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#sendBatch();
    this.#closed = true;
    this.#cancelBeat();
    this.#losses.close();
    this.#delivery.close();
    this.#asks.close();
    await this.#connection.close();
  }

  #sendBatch(): void {
    this.#cancelBatch();
    if (this.#batch.size === 0) return;
    // The hints are already JSON.
    const plain = Buffer.from(`{"type":"hints","hints":[${[...this.#batch].join()}]}`);
    this.#batch.clear();
    this.#batchLength = 0;
    this.#sendPlain(everyone, plain);
  }

  #send(to: string, message: Message): void {
    this.#sendPlain(to, encode(message));
  }

  #sendTo(to: string, message: Message): boolean {
    const plain = encode(message);
    if (plain.length > maxPlainBytes) throw new Error(`the ${message.type} is larger than ${maxPlainBytes} bytes`);
    return this.#sendPlain(to, plain);
  }

  #sendPlain(to: string, plain: Buffer): boolean {
    const isSent = this.#connection.isConnected && this.#connection.send(this.#subject(to), this.#seal.seal(to, plain));
    if (isSent) {
      this.#counts.sent++;
      if (to === everyone) this.#spokeAt = this.#parts.clock.monotonic();
    } else {
      // A sealed message already has a number.
      this.#seal.skip(to);
      this.#counts.dropped++;
    }
    return isSent;
  }

  #scheduleBeat(): void {
    const { clock } = this.#parts;
    const silentFor = clock.monotonic() - this.#spokeAt;
    this.#cancelBeat = clock.after(silentFor < beatMs ? beatMs - silentFor : beatMs, () => {
      const now = clock.monotonic();
      if (now - this.#spokeAt >= beatMs && this.#connection.isConnected) this.#send(everyone, { type: 'beat' });
      if (this.#peers.forgetSilent(now)) this.#losses.lost();
      this.#findUnheard(now);
      this.#scheduleBeat();
    });
  }

  #findUnheard(now: number): void {
    const former = this.#unheard;
    this.#unheard = new Map();
    for (const { incarnation, name } of this.#expected())
      if (!this.#peers.knows(incarnation))
        this.#unheard.set(incarnation, former.get(incarnation) ?? { name, since: now });
  }

  #lost(): void {
    this.#peers.clear();
    this.#asks.disconnected();
  }

  #receive(channel: Channel, bytes: Buffer): void {
    const opened = this.#seal.open(channel === 'all' ? everyone : this.#parts.own, bytes);
    const ignored = typeof opened === 'string' ? opened : this.#accept(channel, opened);
    if (ignored === null) this.#counts.received++;
    else this.#ignored[ignored]++;
  }

  /** @returns why the message is ignored; null if it is accepted */
  #accept(channel: Channel, { sender, number, plain }: Opened): IgnoredReason | null {
    // NATS sent the message back.
    if (sender === this.#parts.own) return 'repeated';
    const order = this.#peers.judge(sender, channel, number, this.#parts.clock.monotonic());
    if (order === 'repeated') return 'repeated';
    const message = decode(plain);
    if (order === 'unknown' && message?.type !== 'numbers') {
      this.#greet(sender);
      if (channel === 'all') this.#peers.ignored(sender, number, message?.type === 'beat');
      // Without a refusal, the sender would wait until its deadline.
      if (message?.type === 'ask' && channel === 'direct')
        this.#send(sender, { type: 'refusal', id: message.id, code: unknownSender, detail: '' });
      if (message?.type !== 'greeting') return 'unknown_sender';
    }
    if (order === 'gap' && channel === 'all') this.#missed();
    if (message === null) return 'unknown_message';
    this.#handle(sender, channel, number, message);
    return null;
  }

  #handle(sender: string, channel: Channel, number: number, message: Message): void {
    switch (message.type) {
      case 'beat':
        return;
      case 'hints':
        for (const hint of hintsIn(message.hints)) this.#delivery.add(hint, 'other');
        return;
      case 'greeting':
        this.#send(sender, { type: 'numbers', nonce: message.nonce, all: this.#seal.sentTo(everyone) });
        return;
      case 'numbers': {
        const { nonce, all } = message;
        const numbers = { all, direct: number };
        // Until now, the sender's hints were ignored.
        const at = this.#parts.clock.monotonic();
        if (channel === 'direct' && this.#peers.answered(sender, nonce, numbers, at) === 'incomplete')
          this.#losses.lost();
        return;
      }
      case 'ask':
        if (channel === 'direct') void this.#asks.asked(sender, message);
        return;
      case 'answer':
      case 'refusal':
        this.#asks.answered(sender, message);
    }
  }

  #greet(sender: string): void {
    const nonce = this.#parts.newNonce();
    if (this.#peers.greet(sender, nonce, this.#parts.clock.monotonic()))
      this.#send(sender, { type: 'greeting', nonce });
  }

  #missed(): void {
    this.#counts.gaps++;
    this.#losses.lost();
  }
}

/** Returns the part of the subjects that identifies a fleet. @param publicKey the orchestrator key */
export const fleetOf = (publicKey: Buffer): string => hash('sha256', publicKey).slice(0, 16);
