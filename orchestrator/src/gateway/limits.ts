import { limits as wireLimits } from '@muster/protocol/wire';

/** Limits of the gateway. Times are in milliseconds. Agents know the wire limits as well. */
export const defaultGatewayLimits = {
  ...wireLimits,
  /** Maximum number of sockets, including waiting ones. Further sockets are dropped immediately. */
  connections: 18_000,
  /**
   * Connections between the start of their handshake and their welcome. With a round trip of 400 ms, and two round trips
   * each, 150 agents a second are still admitted.
   */
  handshakesInFlight: 128,
  /** Handshakes started in one turn of the event loop, so that the API answers in between. */
  handshakesPerTurn: 8,
  /** A connection without a hello after this time gives its slot to the next one, and continues without a slot. */
  handshakePlaceMs: 1_000,
  /** Connections of one network that are not welcomed yet. Bounds the share of a site that is slow to send hellos. */
  unfinishedOfNetwork: 128,
  handshakeTimeoutMs: 10_000,
  /** Sockets that wait for their handshake to begin. */
  waitingSockets: 16_384,
  /**
   * Waiting sockets of one address (of one network for IPv6). A silent address must leave room for others. The limit is
   * high because ten thousand agents may share one address, and a dropped agent dials again within seconds, which costs
   * both ends more than waiting.
   */
  waitingSocketsPerAddress: 12_288,
  /** Maximum wait for a handshake; less than the 45 s that agents wait. */
  waitingTimeoutMs: 40_000,
  /** Links that claim one key at a time, including those that wait. */
  claimants: 4,
  /** Admissions of one agent, per second and burst. An agent that restarts every few seconds is still admitted. */
  admissionsPerSecond: 0.5,
  admissionBurst: 60,
  /** Operations that are read and sent at a time. */
  dispatchesInFlight: 256,
  /** Bytes buffered for the network, over all links, above which no further operation is sent. */
  dispatchBufferBytes: 128 * 1024 * 1024,
  /** Buffered bytes of small messages above which a link is cut, because its agent does not read. */
  slowReaderBytes: 256 * 1024,
  /** Characters of large reports being reassembled, over all links. Above it, agents wait for credit. */
  reassemblyLength: 64 * 1024 * 1024,
  /** Minimum rate of a large report, in characters per second. A slower one would occupy its slot. */
  reportLengthPerSecond: 512,
  /** Maximum time for a large report to be complete. */
  reportDeadlineMs: 15 * 60_000,
  /** Minimum interval between commits of changed attributes. The newest values are committed. */
  attributesIntervalMs: 5_000,
  /** Drift hints of one agent: a burst, then one per interval. */
  driftHintBurst: 30,
  driftHintIntervalMs: 5_000,
  /** Live-output messages from one agent: rate per second, and burst. */
  outputProgressPerSecond: 2,
  outputProgressBurst: 5,
  /** Agents resend samples that were not stored after one to two times this interval. */
  samplesRetryMs: 30_000,
  /** Maximum time for an agent to open a shell. */
  terminalOpenTimeoutMs: 10_000,
  /** Terminals of one link, including closed ones that the agent has not confirmed. Equals the agent's highest setting. */
  terminalsOfLink: 10_000,
  /** Output pieces of one terminal in flight. Further output is joined. */
  terminalPieces: 4_096,
  /** Queued input bytes of one terminal. A client that exceeds it ignores backpressure. */
  terminalInputQueueBytes: 1024 * 1024,
  /** Interval of the sweep for work whose hint was lost. */
  sweepMs: 10_000,
  /** An operation that is not accepted after this time is sent again. */
  resendMs: 30_000,
  /**
   * Refused hellos of one network, per second and burst. Above it, the network's sockets wait for their handshakes: a
   * refused hello costs milliseconds of the event loop.
   */
  refusedHellosPerSecond: 20,
  refusedHelloBurst: 100,
  /** Cost of refusing an agent that proved its key. It is low because a site with a used token is not hostile. */
  provenRefusalCost: 0.1,
  /** Refusals that are logged and audited, per second and burst. The rest are only counted. */
  refusalsPerSecond: 10,
  refusalBurst: 100,
  /** Interval of the timer that pings, expires, and sweeps. */
  tickMs: 250,
  /** A socket that does not answer a close frame is destroyed after this time. */
  closeTimeoutMs: 5_000,
  /** Maximum time that a drain waits for pending commits. */
  drainMs: 10_000,
};
export type GatewayLimits = Record<keyof typeof defaultGatewayLimits, number>;
