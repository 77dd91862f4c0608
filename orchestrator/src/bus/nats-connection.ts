import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import {
  AuthorizationError,
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection as NatsClient,
  nkeyAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { createClient, type DisposableClient } from './nats-client.ts';
import { credentialsIn } from './nats-credentials.ts';
import type { Channel } from './peer-numbers.ts';
import { maxSealedBytes } from './sealing.ts';

/**
 * A connection to NATS that is reopened when it is lost. Each attempt uses a new client, so that no message that was
 * waiting in the previous client is sent later.
 */

/** Maximum number of milliseconds to wait for NATS, when connecting and again when subscribing. */
const connectTimeoutMs = 5_000;
/** Milliseconds between pings. After two without an answer, the connection counts as lost. */
const pingMs = 3_000;
/** Maximum number of milliseconds to wait for NATS when the connection is closed. */
const closingMs = 1_000;
const firstDelayMs = 250;
const maxDelayMs = 5_000;
/**
 * Milliseconds after which a connection counts as stable. NATS may close it at the first message if a permission is
 * missing.
 */
const stableMs = 10_000;
/** Maximum number of bytes that NATS has not confirmed. Further messages are dropped. */
const maxUnconfirmed = 8 * 1024 * 1024;

export interface NatsSettings {
  readonly url: string;
  readonly credentialsFile: string | null;
  readonly caFile: string | null;
}

export interface NatsParts {
  readonly settings: NatsSettings;
  /** The subjects that this process reads. */
  readonly subjects: Readonly<Partial<Record<Channel, string>>>;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  connected(): void;
  lost(): void;
  received(channel: Channel, bytes: Buffer): void;
}

export class NatsConnection {
  readonly #parts: NatsParts;
  #client: NatsClient | null = null;
  #unconfirmed = 0;
  #confirming = false;
  #closed = false;
  /** When the connection was opened, in monotonic milliseconds; infinite without a connection. */
  #connectedAt = Number.POSITIVE_INFINITY;
  /** The last logged reason why there is no connection; null once a connection is stable. */
  #fault: string | null = null;
  #cancelDelay = () => {};
  #running: Promise<void> = Promise.resolve();

  /** @throws Error if a file that the settings name cannot be read */
  constructor(parts: NatsParts) {
    this.#parts = parts;
    optionsOf(parts.settings);
  }

  start(): void {
    this.#running = this.#run();
  }

  get isConnected(): boolean {
    return this.#client !== null;
  }

  /** @returns whether the message was passed to NATS, which may still lose it */
  send(subject: string, bytes: Buffer): boolean {
    const client = this.#client;
    if (client === null || client.isClosed() || this.#unconfirmed + bytes.length > maxUnconfirmed) return false;
    try {
      client.publish(subject, bytes);
    } catch {
      // The connection is about to end.
      return false;
    }
    this.#unconfirmed += bytes.length;
    if (!this.#confirming) void this.#confirm(client);
    return true;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelDelay();
    const client = this.#client;
    // Sends waiting messages. A connection that is being opened is closed as soon as it is open.
    await this.#orLate(client?.flush());
    await client?.close();
    await this.#orLate(this.#running);
  }

  /** Waits at most `closingMs`. Never rejects. */
  async #orLate(work: Promise<void> | undefined): Promise<void> {
    let cancelTimer = () => {};
    const late = new Promise<void>((resolve) => {
      cancelTimer = this.#parts.clock.after(closingMs, resolve);
    });
    await Promise.race([work, late]).catch(() => {});
    cancelTimer();
  }

  async #run(): Promise<void> {
    const { clock, random, log } = this.#parts;
    for (let failures = 0; !this.#closed; failures++) {
      let opened: DisposableClient | null = null;
      try {
        opened = createClient(optionsOf(this.#parts.settings));
        await opened.connect();
        await this.#serve(opened.client);
      } catch (error) {
        if (clock.monotonic() - this.#connectedAt >= stableMs) {
          failures = 0;
          this.#fault = null;
        }
        this.#connectedAt = Number.POSITIVE_INFINITY;
        const fault = explain(error);
        if (!this.#closed && fault !== this.#fault)
          log.warn({ reason: fault }, 'no connection to NATS; replicas find changes by polling; will reconnect');
        this.#fault = fault;
      } finally {
        await opened?.destroy();
      }
      if (this.#closed) return;
      const delay = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(failures, 10)) * (0.5 + random() / 2);
      await new Promise<void>((resolve) => {
        const cancelTimer = clock.after(delay, resolve);
        this.#cancelDelay = () => {
          cancelTimer();
          resolve();
        };
      });
    }
  }

  /** Uses a client until its connection ends. @throws Error with the reason */
  async #serve(client: NatsClient): Promise<void> {
    const { subjects, clock, log, connected, lost, received } = this.#parts;
    const refused = Promise.withResolvers<Error>();
    const ended = Promise.race([
      client.closed().then((reason) => reason || new Error('NATS closed the connection')),
      refused.promise,
    ]);
    const { info } = client;
    if (info === undefined) throw await ended;
    if (info.max_payload < maxSealedBytes)
      throw new Error(`its max_payload is ${info.max_payload} bytes; set it to at least ${maxSealedBytes}`);
    for (const channel of ['all', 'direct'] as const) {
      const subject = subjects[channel];
      if (subject === undefined) continue;
      client.subscribe(subject, {
        callback: (error, { data }) => {
          if (error) return refused.resolve(error);
          if (client !== this.#client) return;
          try {
            received(channel, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
          } catch (error) {
            // Reconnects: the message already counts as received, so no gap in the message numbers would reveal that its hints
            // were lost.
            refused.resolve(new Error(`failed to handle a message: ${explain(error)}`));
          }
        },
      });
    }
    void (async () => {
      for await (const status of client.status()) {
        if (status.type === 'error') refused.resolve(status.error);
        else if (status.type === 'staleConnection') refused.resolve(new Error('NATS does not answer'));
      }
    })();
    // The library does not end this wait when the connection is lost.
    const cancelTimer = clock.after(connectTimeoutMs, () => refused.resolve(new Error('NATS does not answer')));
    await Promise.race([client.flush(), ended.then((error) => Promise.reject(error))]).finally(cancelTimer);
    if (this.#closed) return;
    this.#connectedAt = clock.monotonic();
    this.#unconfirmed = 0;
    this.#confirming = false;
    this.#client = client;
    log.info({ server: client.getServer() }, 'connected to NATS');
    connected();
    const reason = await ended;
    this.#client = null;
    lost();
    throw reason;
  }

  /** Waits until NATS confirms which messages have arrived. */
  async #confirm(client: NatsClient): Promise<void> {
    this.#confirming = true;
    try {
      while (this.#unconfirmed > 0 && client === this.#client) {
        const bytes = this.#unconfirmed;
        await client.flush();
        if (client === this.#client) this.#unconfirmed -= bytes;
      }
    } catch {
      // The connection has ended.
    }
    if (client === this.#client) this.#confirming = false;
  }
}

/** Returns the options of a connection. Reads the files each time, because they may have been replaced. */
function optionsOf({ url, credentialsFile, caFile }: NatsSettings): ConnectionOptions {
  const { protocol, hostname, host } = new URL(url);
  const ca = caFile === null ? undefined : readSetting('nats.ca_file', caFile);
  const name = hostname.replace(/^\[(.*)\]$/, '$1');
  // The library sets the name to check in the certificate only for host names. `host` makes Node.js check an IP
  // address.
  const tls = { ...(ca === undefined ? {} : { ca }), ...(isIP(name) ? { host: name } : { servername: name }) };
  return {
    servers: host,
    name: 'muster',
    // Otherwise, NATS returns each message to its sender.
    noEcho: true,
    reconnect: false,
    ignoreClusterUpdates: true,
    resolve: false,
    timeout: connectTimeoutMs,
    pingInterval: pingMs,
    maxPingOut: 2,
    // Null: no TLS, even if the server offers it.
    tls: protocol === 'tls:' ? tls : null,
    ...(credentialsFile === null ? {} : { authenticator: authenticatorOf(credentialsFile) }),
  };
}

function authenticatorOf(file: string) {
  const credentials = credentialsIn(readSetting('nats.credentials_file', file), file);
  switch (credentials.kind) {
    case 'jwt':
      return credsAuthenticator(Buffer.from(credentials.text));
    case 'nkey':
      return nkeyAuthenticator(Buffer.from(credentials.seed));
    case 'password':
      return usernamePasswordAuthenticator(credentials.user, credentials.password);
  }
}

function readSetting(key: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${key} ${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Returns why there is no connection. */
function explain(error: unknown): string {
  if (error instanceof AuthorizationError) return 'NATS refuses the credentials: check nats.credentials_file';
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && cause.message !== message ? `${message}: ${cause.message}` : message;
}
