import { limits as wireLimits } from '@muster/protocol/wire';

/** Limits of the gateway. Times are in milliseconds. Agents know the wire limits, which are part of the protocol. */
export const defaultGatewayLimits = {
  ...wireLimits,
  /** Maximum number of sockets, including waiting ones. More are dropped immediately. */
  connections: 18_000,
  /**
   * Maximum number of connections between the start of their handshake and their welcome. With two round trips of 400
   * ms each, 150 agents per second can be admitted.
   */
  handshakesInFlight: 128,
  /** Maximum number of handshakes started in one turn of the event loop. The API is served between turns. */
  handshakesPerTurn: 8,
  /** Time after which a connection without a hello loses its slot to the next one. It stays open. */
  handshakeSlotMs: 1_000,
  /** Maximum number of connections of one network before their welcome. */
  unfinishedOfNetwork: 128,
  handshakeTimeoutMs: 10_000,
  /** Maximum number of sockets that wait for the start of their handshake. */
  waitingSockets: 16_384,
  /**
   * Maximum number of waiting sockets of one IPv4 address or IPv6 network. Lower than the total, to reserve space for
   * others. High, because ten thousand agents may share one address, and redialing costs both sides more than waiting.
   */
  waitingSocketsPerAddress: 12_288,
  /** Maximum wait for a handshake; less than the 45 s that agents wait. */
  waitingTimeoutMs: 40_000,
  /** Maximum number of links with one key that are admitted or wait for their admission at the same time. */
  claimants: 4,
  /** Admissions of one agent: rate per second, and burst. An agent may restart every few seconds. */
  admissionsPerSecond: 0.5,
  admissionBurst: 60,
  /** Maximum number of agents whose work is read at the same time. */
  dispatchesInFlight: 256,
  /** Maximum bytes of operations that wait for the network, over all links. */
  dispatchBufferBytes: 128 * 1024 * 1024,
  /** Buffered bytes of small messages above which a link is ended, because its agent does not read. */
  slowReaderBytes: 256 * 1024,
  /** Maximum characters of partly received reports, over all links. Above this limit, agents wait for credit. */
  reassemblyLength: 64 * 1024 * 1024,
  /** Minimum rate of a large report, in characters per second. A slower report would occupy its budget too long. */
  reportLengthPerSecond: 512,
  /** Maximum time to receive a complete large report. */
  reportDeadlineMs: 15 * 60_000,
  /** Minimum interval between commits of changed attributes. The newest values are committed. */
  attributesIntervalMs: 5_000,
  /** Drift hints of one agent: burst, and interval after the burst. */
  driftHintBurst: 30,
  driftHintIntervalMs: 5_000,
  /** Live output messages of one agent: rate per second, and burst. */
  outputProgressPerSecond: 2,
  outputProgressBurst: 5,
  /** Minimum time after which agents resend samples that were not stored. Agents wait up to twice this time. */
  samplesRetryMs: 30_000,
  /** Maximum time for an agent to open a shell. */
  terminalOpenTimeoutMs: 10_000,
  /**
   * Maximum number of terminals of one link, including closed terminals that the agent has not confirmed. Equals the
   * maximum of the agent's own setting.
   */
  terminalsOfLink: 10_000,
  /** Maximum number of output pieces of one terminal in flight. Further output is joined into one piece. */
  terminalPieces: 4_096,
  /** Maximum bytes of queued input of one terminal. Only a client that ignores backpressure exceeds it. */
  terminalInputQueueBytes: 1024 * 1024,
  /** Interval of sweeps for work whose hint was lost. */
  sweepMs: 10_000,
  /** Time after which an operation that was not accepted is sent again. */
  resendMs: 30_000,
  /**
   * Refused hellos of one network: rate per second, and burst. Above this rate, new handshakes of the network wait,
   * because a refused hello blocks the event loop for milliseconds.
   */
  refusedHellosPerSecond: 20,
  refusedHelloBurst: 100,
  /**
   * Cost of refusing an agent that proved its key, relative to other refusals. Low, because a site with an invalid
   * token is not an attacker.
   */
  provenRefusalCost: 0.1,
  /** Refusals that are logged and audited: rate per second, and burst. Further refusals are only counted. */
  refusalsPerSecond: 10,
  refusalBurst: 100,
  /** Interval of the timer for pings, time limits, and sweeps. */
  tickMs: 250,
  /** Time after which a socket that does not answer a close frame is destroyed. */
  closeTimeoutMs: 5_000,
  /** Maximum time that a drain waits for pending commits. */
  drainMs: 10_000,
};
export type GatewayLimits = Record<keyof typeof defaultGatewayLimits, number>;
