import { createSocket, type Socket } from 'node:dgram';
import type { Announcement } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { Announcements, type Ignored } from './announcements.ts';

/** A port that is taken, or a network that is not up yet. */
const retryMs = 30_000;
/** What is ignored is said no more often than this: anybody can send datagrams. */
const ignoredLogMs = 60_000;

export interface ListenerOptions {
  clock: Clock;
  log: Log;
  /** Hex of the only key that is obeyed, null while any is. */
  pinnedKey: () => string | null;
  announced: (announcement: Announcement) => void;
}

/** Listens for orchestrators that announce themselves. It never sends anything. */
export class Listener {
  private readonly options: ListenerOptions;
  private readonly announcements: Announcements;
  private port: number | null = null;
  private socket: Socket | null = null;
  private callOffRetry: () => void = () => {};
  private ignored = 0;
  private ignoredLoggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ListenerOptions) {
    this.options = options;
    const { clock, pinnedKey } = options;
    this.announcements = new Announcements({ now: () => clock.now(), monotonic: () => clock.monotonic(), pinnedKey });
  }

  /** Listens on this port from now on, null: on none. */
  listen(port: number | null): void {
    if (port === this.port) return;
    this.port = port;
    this.close();
    if (port !== null) this.open(port, 'udp6');
  }

  private open(port: number, type: 'udp4' | 'udp6'): void {
    const { log, clock } = this.options;
    // On IPv6 it hears IPv4 as well. Shared, so that all agents of a machine hear a broadcast.
    const socket = createSocket({ type, reuseAddr: true });
    this.socket = socket;
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (this.socket !== socket) return;
      this.close();
      if (type === 'udp6' && (error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL')) {
        this.open(port, 'udp4');
        return;
      }
      log.error({ port, error }, 'cannot listen for announcements of the orchestrator; tried again');
      this.callOffRetry = clock.after(retryMs, () => this.open(port, 'udp6'));
    });
    socket.on('message', (datagram, from) => {
      try {
        this.receive(datagram, from.address);
      } catch (error) {
        log.error({ error }, 'a bug: handling a datagram failed; it is ignored');
      }
    });
    socket.bind(port, () => {
      log.info({ event: 'listening', port }, 'listening for an orchestrator that announces itself: muster discover');
    });
  }

  private close(): void {
    this.callOffRetry();
    this.callOffRetry = () => {};
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
    log.info({ from, host: announcement.host, port: announcement.port }, 'an orchestrator announces itself');
    this.options.announced(announcement);
  }

  private logIgnored(reason: Ignored, from: string, sentAt: number | undefined): void {
    const { log, clock } = this.options;
    const now = clock.monotonic();
    this.ignored++;
    if (now - this.ignoredLoggedAt < ignoredLogMs) return;
    const count = this.ignored;
    this.ignored = 0;
    this.ignoredLoggedAt = now;
    if (sentAt === undefined) log.warn({ from, reason, count }, 'a datagram that is not to be followed is ignored');
    else
      log.warn(
        { from, sent_at: new Date(Math.min(sentAt, 8.64e12) * 1000).toISOString(), count },
        'an announcement is ignored, since the clocks differ by more than ten minutes: set the clock of this machine, or of the orchestrator',
      );
  }
}
