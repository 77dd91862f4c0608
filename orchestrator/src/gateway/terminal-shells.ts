import { MusterError } from '@muster/protocol';
import { type AgentMessage, decodeTerminalFrame } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import { oneLine } from '../domain/shared/single-line.ts';
import type { Shell, ShellEvents, ShellOptions, Shells } from '../domain/terminals/shells.ts';
import { Deadlines } from './deadlines.ts';
import type { GatewayLimits } from './limits.ts';
import type { Link } from './link.ts';
import { LinkTerminals } from './link-terminals.ts';
import type { LinkRegistry } from './presence.ts';
import { Channel, nameOf } from './terminal-channel.ts';

/** The first protocol version that supports terminals. */
const versionWithTerminals = 3;

/** Terminal messages from agents, except output. */
export type TerminalMessage = Extract<AgentMessage, { channel: number }>;

/** Opens shells on agents, and routes messages between links and channels. */
export class TerminalShells implements Shells {
  private readonly registry: LinkRegistry;
  private readonly clock: Clock;
  private readonly limits: GatewayLimits;
  /** Channels that wait for the agent's reply. */
  private readonly unanswered: Deadlines<Channel>;

  constructor(options: { registry: LinkRegistry; clock: Clock; limits: GatewayLimits }) {
    this.registry = options.registry;
    this.clock = options.clock;
    this.limits = options.limits;
    this.unanswered = new Deadlines(this.limits.terminalOpenTimeoutMs);
  }

  async open(options: ShellOptions, events: ShellEvents): Promise<Shell> {
    if (this.registry.draining) throw new MusterError('draining');
    const link = this.linkFor(options.node_id);
    link.terminals ??= new LinkTerminals();
    const { terminals } = link;
    // A closed channel counts until the agent confirms the close, because its shell may still be running.
    if (terminals.channels.size >= this.limits.terminalsOfLink || terminals.last >= this.limits.mostChannel)
      throw new MusterError(
        'terminal_limit',
        `${nameOf(link)} already has ${terminals.channels.size} terminals, which is the maximum; close one of them`,
      );
    return new Promise((resolve, reject) => {
      const now = this.clock.monotonic();
      const { limits } = this;
      const channel = new Channel(link, ++terminals.last, { limits, events, answer: { resolve, reject }, now });
      terminals.channels.set(channel.number, channel);
      this.unanswered.add(channel, now);
      const { session_id, cols, rows, shell } = options;
      const operator = oneLine(options.operator, 128);
      link.send({ type: 'terminal_open', channel: channel.number, session_id, cols, rows, shell, operator });
    });
  }

  private linkFor(nodeId: string): Link {
    const link = this.registry.get(nodeId);
    if (link?.state !== 'open') throw new MusterError('agent_offline', `the agent ${nodeId} is offline`);
    if (link.standing?.status !== 'approved')
      throw new MusterError('agent_not_approved', `the agent is ${link.standing?.status}`);
    if (link.version < versionWithTerminals)
      throw new MusterError('terminal_disabled', `the release of ${nameOf(link)} has no terminals: update its agent`);
    return link;
  }

  /** Handles a binary frame on a link that has or had terminals. */
  receiveFrame(link: Link, frame: Buffer): void {
    const terminal = decodeTerminalFrame(frame);
    if (terminal === null) {
      link.violation(`a binary frame of ${frame.length} bytes is not a terminal frame`);
      return;
    }
    const channel = this.channelOf(link, terminal.channel);
    const fault = channel?.onOutput(terminal.bytes, this.clock.monotonic()) ?? null;
    if (fault !== null) link.violation(fault);
  }

  receive(link: Link, message: TerminalMessage): void {
    const channel = this.channelOf(link, message.channel);
    if (channel === null) return;
    if (message.type !== 'terminal_credit') this.unanswered.delete(channel);
    const fault = deliver(channel, message);
    if (channel.over) link.terminals?.channels.delete(channel.number);
    if (fault !== null) link.violation(fault);
    // Large credits do not count toward the message rate, because the number of input bytes limits them.
    else if (message.type === 'terminal_credit' && message.bytes * 4 >= this.limits.terminalInputWindowBytes)
      link.uncount();
  }

  /** @returns null if the channel does not exist; closes the link in this case */
  private channelOf(link: Link, number: number): Channel | null {
    const channel = link.terminals?.channels.get(number);
    if (channel !== undefined) return channel;
    const owner = number <= (link.terminals?.last ?? 0) ? 'a closed terminal' : 'no terminal';
    link.violation(`channel ${number} belongs to ${owner}`);
    return null;
  }

  /** Terminates the shells of a link that is closing, without waiting for the agent. */
  forget(link: Link): void {
    const { terminals } = link;
    if (terminals === null) return;
    link.terminals = null;
    const reason = `the link to ${nameOf(link)} ended: ${oneLine(link.endReason ?? 'connection lost', 200)}`;
    for (const channel of terminals.channels.values()) {
      this.unanswered.delete(channel);
      try {
        channel.onLost(reason);
      } catch (error) {
        link.fault(error);
      }
    }
  }

  /** Closes channels whose opening the agent did not confirm within the time limit. Called by the gateway's timer. */
  tick(now: number): void {
    for (const channel of this.unanswered.expired(now)) channel.onTimeout();
  }
}

/** Delivers a message to its channel. @returns a description of the protocol violation, or null */
function deliver(channel: Channel, message: TerminalMessage): string | null {
  switch (message.type) {
    case 'terminal_opened':
      return channel.onOpened(message.shell, message.user);
    case 'terminal_refused':
      return channel.onRefused(message.code, message.message);
    case 'terminal_exited':
      return channel.onExited({ code: message.exit_code, signal: message.signal });
    case 'terminal_credit':
      return channel.onCredit(message.bytes);
  }
}
