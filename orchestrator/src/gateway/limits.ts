import { limits as wireLimits } from '@muster/protocol/wire';

/** Gateway limits. Times are in milliseconds. The wire limits, which agents also enforce, are part of the protocol. */
export const defaultGatewayLimits = {
  ...wireLimits,
  /** Maximum number of sockets, including waiting ones. Further sockets are dropped immediately. */
  connections: 18_000,
  /**
   * Maximum number of connections that have started their handshake but not received their welcome. With two round
   * trips of 400 ms each, 150 agents per second can be admitted.
   */
  handshakesInFlight: 128,
  /** Maximum number of handshakes started per event-loop turn. The API is served between turns. */
  handshakesPerTurn: 8,
  /** Time after which a connection without a hello loses its slot to the next connection, but stays open. */
  handshakeSlotMs: 1_000,
  /** Maximum number of connections per network that have not received their welcome. */
  unfinishedOfNetwork: 128,
  handshakeTimeoutMs: 10_000,
  /** Maximum number of sockets waiting for their handshake to start. */
  waitingSockets: 16_384,
  /**
   * Maximum waiting sockets per IPv4 address or IPv6 network. Lower than the total, to reserve space for other
   * networks. High, because ten thousand agents may share one address, and redialing costs both sides more than
   * waiting.
   */
  waitingSocketsPerAddress: 12_288,
  /** Maximum wait for a handshake. Less than the 45 s that agents wait. */
  waitingTimeoutMs: 40_000,
  /** Maximum number of links per key that are being admitted or waiting for admission at the same time. */
  claimants: 4,
  /** Admissions per agent: rate per second, and burst. An agent may restart every few seconds. */
  admissionsPerSecond: 0.5,
  admissionBurst: 60,
  /** Maximum number of agents whose work is read at the same time. */
  dispatchesInFlight: 256,
  /** Maximum number of bytes of operations waiting for the network, over all links. */
  dispatchBufferBytes: 128 * 1024 * 1024,
  /** Bytes of buffered small messages above which a link is closed because its agent does not read. */
  slowReaderBytes: 256 * 1024,
  /**
   * Maximum number of characters of partly received reports, over all links. Above this limit, agents wait for credit.
   */
  reassemblyLength: 64 * 1024 * 1024,
  /** Minimum rate of a large report, in characters per second. A slower report would occupy its budget for too long. */
  reportLengthPerSecond: 512,
  /** Maximum time to receive a complete large report. */
  reportDeadlineMs: 15 * 60_000,
  /** Minimum interval between commits of changed attributes. Each commit contains the newest values. */
  attributesIntervalMs: 5_000,
  /** Drift hints per agent: burst, and interval after the burst. */
  driftHintBurst: 30,
  driftHintIntervalMs: 5_000,
  /** Live output messages per agent: rate per second, and burst. */
  outputProgressPerSecond: 2,
  outputProgressBurst: 5,
  /** Minimum time after which agents resend samples that were not stored. Agents wait up to twice this time. */
  samplesRetryMs: 30_000,
  /** Maximum time for an agent to open a shell. */
  terminalOpenTimeoutMs: 10_000,
  /**
   * Maximum number of terminals per link, including closed terminals that the agent has not confirmed. Equals the
   * maximum that the agent's own setting allows.
   */
  terminalsOfLink: 10_000,
  /** Maximum number of output chunks in flight per terminal. Further output is joined into one chunk. */
  terminalPieces: 4_096,
  /** Maximum number of bytes of queued input per terminal. Only a client that ignores backpressure exceeds it. */
  terminalInputQueueBytes: 1024 * 1024,
  /**
   * Maximum number of links to which contents are sent at the same time; other links wait for their turn. Each of these
   * links has one part in memory.
   */
  contentLinks: 512,
  /** Time after which the gateway checks again that an agent may read the contents of its operation. */
  contentGrantMs: 2_000,
  /** Interval of sweeps for work whose hint was lost. */
  sweepMs: 10_000,
  /** Time after which an operation that was not accepted is sent again. */
  resendMs: 30_000,
  /**
   * Refused hellos per network: rate per second, and burst. Above this rate, new handshakes from the network wait,
   * because a refused hello blocks the event loop for milliseconds.
   */
  refusedHellosPerSecond: 20,
  refusedHelloBurst: 100,
  /**
   * Cost of refusing an agent that proved possession of its key, relative to other refusals. Low, because a site with
   * an invalid token is not an attacker.
   */
  provenRefusalCost: 0.1,
  /** Refusals that are logged and audited: rate per second, and burst. Further refusals are only counted. */
  refusalsPerSecond: 10,
  refusalBurst: 100,
  /** Timer interval for pings, time limits, and sweeps. */
  tickMs: 250,
  /** Time after which a socket that sends no close frame in reply is destroyed. */
  closeTimeoutMs: 5_000,
  /** Maximum time for which a drain waits for pending commits. */
  drainMs: 10_000,
};
export type GatewayLimits = Record<keyof typeof defaultGatewayLimits, number>;
