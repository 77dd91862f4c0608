import { limits as wireLimits } from '@muster/protocol/wire';

/** What the gateway allows. Times in milliseconds. Those of the wire are known to the agents as well. */
export const defaultGatewayLimits = {
  ...wireLimits,
  /** Sockets altogether, waiting ones included; more are dropped at once. */
  connections: 18_000,
  /**
   * Connections between the start of their handshake and their welcome: as many as are served in time. Agents that are
   * 400 ms away, at two round trips each, still come in at 150 a second.
   */
  handshakesInFlight: 128,
  /** Handshakes that begin in one turn of the loop: their cost comes in slices between which the API answers. */
  handshakesPerTurn: 8,
  /** A connection that has said no hello by then gives its place to the next, and goes on without one. */
  handshakePlaceMs: 1_000,
  /** Connections of one network that are not welcomed yet: a site that is slow to say hello is not asked for more of them. */
  unfinishedOfNetwork: 128,
  handshakeTimeoutMs: 10_000,
  /** Sockets that wait for their handshake to begin. */
  waitingSockets: 16_384,
  /**
   * Of them, those of one address (of one network for IPv6): a silent one must leave room, yet ten thousand agents may share
   * one, and each that is dropped dials again within seconds, which costs both ends more than its wait.
   */
  waitingSocketsPerAddress: 12_288,
  /** Less than agents wait for their handshake: 45 s. */
  waitingTimeoutMs: 40_000,
  /** Links that claim one key and wait for each other. */
  claimants: 4,
  /** Links of one agent that are admitted, a second and at once: one that restarts in a loop every few seconds gets in. */
  admissionsPerSecond: 0.5,
  admissionBurst: 60,
  /** Operations that are read and sent at once. */
  dispatchesInFlight: 256,
  /** No further operation is sent while so many bytes wait for the network, over all links. */
  dispatchBufferBytes: 128 * 1024 * 1024,
  /** A link on which so many bytes of small messages wait is cut: its agent does not read. */
  slowReaderBytes: 256 * 1024,
  /** Characters of large reports being put together, over all links; beyond it, agents wait for their credits. */
  reassemblyLength: 64 * 1024 * 1024,
  /** Least characters of a large report a second: what comes more slowly only holds its place. */
  reportLengthPerSecond: 512,
  /** A large report must be whole by then. */
  reportDeadlineMs: 15 * 60_000,
  /** Changed attributes are committed no more often than this, the newest winning. */
  attributesIntervalMs: 5_000,
  /** Drift hints of an agent that are followed at once; from then on one in so long. */
  driftHintBurst: 30,
  driftHintIntervalMs: 5_000,
  /** Pieces of running programs' output that one agent may send, a second and at once. */
  outputProgressPerSecond: 2,
  outputProgressBurst: 5,
  /** Samples that could not be stored come again after this, or up to twice as much: the agents spread themselves. */
  samplesRetryMs: 30_000,
  /** A shell that was asked for must be there by then. */
  terminalOpenTimeoutMs: 10_000,
  /** Terminals of one link, with those that were closed and whose end the agent has not told: as many as an agent may be set to. */
  terminalsOfLink: 10_000,
  /** Pieces of what one terminal shows that are on their way; what comes then is put together. */
  terminalPieces: 4_096,
  /** What may wait to be typed into one terminal: who types more has not heeded that it takes nothing. */
  terminalInputQueueBytes: 1024 * 1024,
  /** How often rows are looked at for hints that were lost. */
  sweepMs: 10_000,
  /** An operation that was not accepted after this is sent again. */
  resendMs: 30_000,
  /**
   * Hellos of one network that may be refused, a second and at once. Its further sockets wait for their handshakes: a
   * refused hello costs milliseconds of the one event loop.
   */
  refusedHellosPerSecond: 20,
  refusedHelloBurst: 100,
  /** What a refusal counts of an agent that has proved its key: a site with a spent token is not hostile. */
  provenRefusalCost: 0.1,
  /** Refusals that are logged and audited, a second and at once; the others are counted. */
  refusalsPerSecond: 10,
  refusalBurst: 100,
  /** Slice of the one timer that pings, expires and sweeps. */
  tickMs: 250,
  /** A socket that does not answer our close frame is destroyed after this. */
  closeTimeoutMs: 5_000,
  /** The drain waits so long for commits under way. */
  drainMs: 10_000,
};
export type GatewayLimits = Record<keyof typeof defaultGatewayLimits, number>;
