import { createSocket, type Socket } from 'node:dgram';
import type { Announcement } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { Announcements, type Ignored } from './announcements.ts';

/** Delay after a failure, for example if a port is in use or a network is not up yet. */
const retryMs = 30_000;
/**
 * Minimum time between log lines about ignored datagrams, in milliseconds. Anyone can send datagrams, so the log could
 * otherwise grow quickly.
 */
const minIgnoredLogMs = 60_000;

export interface ListenerOptions {
  clock: Clock;
  log: Log;
  /** Returns the only accepted key in hexadecimal; null if any key is accepted. */
  pinnedKey: () => string | null;
  announced: (announcement: Announcement) => void;
}

/** Listens for announcements of orchestrators. Never sends a datagram. */
export class Listener {
  private readonly options: ListenerOptions;
  private readonly announcements: Announcements;
  private port: number | null = null;
  private socket: Socket | null = null;
  private cancelRetry: () => void = () => {};
  private ignored = 0;
  private ignoredLoggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ListenerOptions) {
    this.options = options;
    const { clock, pinnedKey } = options;
    this.announcements = new Announcements({ now: () => clock.now(), monotonic: () => clock.monotonic(), pinnedKey });
  }

  /** Listens on another port, or stops listening if the port is null. */
  listen(port: number | null): void {
    if (port === this.port) return;
    this.port = port;
    this.close();
    if (port !== null) this.open(port, 'udp6');
  }

  private open(port: number, type: 'udp4' | 'udp6'): void {
    const { log, clock } = this.options;
    // An IPv6 socket also receives IPv4 datagrams. The address is shared, so that all agents on a machine receive a
    // broadcast.
    const socket = createSocket({ type, reuseAddr: true });
    this.socket = socket;
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (this.socket !== socket) return;
      this.close();
      if (type === 'udp6' && (error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL')) {
        this.open(port, 'udp4');
        return;
      }
      log.error({ port, error }, 'failed to listen for announcements; will retry');
      this.cancelRetry = clock.after(retryMs, () => this.open(port, 'udp6'));
    });
    socket.on('message', (datagram, from) => {
      try {
        this.receive(datagram, from.address);
      } catch (error) {
        log.error({ error }, 'bug: failed to handle a datagram; ignoring it');
      }
    });
    socket.bind(port, () => {
      log.info({ event: 'listening', port }, 'listening for orchestrator announcements (muster discover)');
    });
  }

  private close(): void {
    this.cancelRetry();
    this.cancelRetry = () => {};
    this.socket?.close();
    this.socket = null;
  }

  private receive(datagram: Buffer, from: string): void {
    const { log } = this.options;
    const verdict = this.announcements.judge(datagram);
    if ('ignored' in verdict) {
      this.logIgnored(verdict.ignored, from, verdict.sentAt);
      return;
    }
    const { announcement } = verdict;
    log.info({ from, host: announcement.host, port: announcement.port }, 'received an orchestrator announcement');
    this.options.announced(announcement);
  }

  private logIgnored(reason: Ignored, from: string, sentAt: number | undefined): void {
    const { log, clock } = this.options;
    const now = clock.monotonic();
    this.ignored++;
    if (now - this.ignoredLoggedAt < minIgnoredLogMs) return;
    const count = this.ignored;
    this.ignored = 0;
    this.ignoredLoggedAt = now;
    if (sentAt === undefined) log.warn({ from, reason, count }, 'ignored a datagram');
    else
      log.warn(
        { from, sent_at: new Date(Math.min(sentAt, 8.64e12) * 1000).toISOString(), count },
        'ignored an announcement because the clock skew exceeds ten minutes; correct the clock of this machine or the orchestrator',
      );
  }
}
