/**
 * Limits of the link. Agent and orchestrator enforce them on each other. Bytes and milliseconds unless a name says
 * otherwise.
 */
export const limits = {
  /**
   * Largest text frame that an agent may send. Small, so that a burst does not permanently enlarge the receive buffer
   * of the link.
   */
  agentFrameBytes: 32 * 1024,
  /** Largest frame the orchestrator sends: a desired set with its file contents. */
  orchestratorFrameBytes: 64 * 1024 * 1024,
  /** Maximum of sent bytes without an acknowledgment or a credit. */
  unacknowledgedBytes: 8 * 1024,
  /** Length, in characters, of one piece of a report too large for one frame. */
  reportPartLength: 4 * 1024,
  /** Maximum pieces of one report. A piece is shorter if its text grows when encoded. */
  reportParts: 4 * 1024,
  /** Maximum length of a report of joined pieces, in characters. */
  reportLength: 4 * 1024 * 1024,
  /** Protocol versions that a hello may offer. */
  helloVersions: 16,
  /** Time limit for the hello. */
  helloTimeoutMs: 10_000,
  pingIntervalMs: 30_000,
  /** Unanswered pings after which the link is lost. */
  missedPings: 3,
  /** Control messages an agent may send in a second, on average. */
  agentMessagesPerSecond: 500,
  agentMessageBurst: 2_000,
  reconnectBaseMs: 500,
  reconnectCapMs: 60_000,
  /** Longest wait if the last link ended less than `recentLinkMs` ago. */
  recentReconnectCapMs: 5_000,
  recentLinkMs: 5 * 60_000,
  /** The backoff is reset after a link of at least this duration. */
  stableLinkMs: 10_000,
  /** Number of consecutive short links after which they no longer count as recent. */
  shortLinks: 10,
  /** Delay before a rejected or removed agent connects again. */
  rejectedRetryAfterSecs: 600,
  /** Maximum wait for the old link's answer when a second instance uses the same key. */
  cloneProbeMs: 5_000,
  /** Results of one operation: as many as the maximum desired set, and the same number of removals. */
  maxResults: 40_000,
  /** Results of one operation for resources that its agent was sent; the others of `maxResults` are removals. */
  maxResources: 20_000,
  /** Name of the resource in an output, in characters. */
  outputResourceLength: 4_300,
  /** Samples in one message: the maximum that fits a frame. */
  samplesOfMessage: 48,
  maxAttributes: 512,
  maxAttributeLength: 1024,
  /** All attributes as JSON. The rest of a hello's frame is for 64 open operations, the hostname, and the keys. */
  attributesBytes: 24 * 1024,
  maxScriptOutputLength: 256 * 1024,
  /** Largest frame of `output_progress`: half of the window, so that results still fit in the other half. */
  outputProgressBytes: 4 * 1024,
  /**
   * Minimum interval between two `output_progress` messages. The next one also waits for the answer to the previous
   * one.
   */
  outputProgressIntervalMs: 1_000,
  /** Maximum channel number of a terminal on a link: 32 bits. */
  mostChannel: 0xffff_ffff,
  /** Maximum terminal bytes in one binary frame. */
  terminalFrameBytes: 16 * 1024,
  /** Maximum output of one terminal that is not yet acknowledged by `terminal_credit`. */
  terminalOutputWindowBytes: 256 * 1024,
  /** Maximum input of one terminal that is not yet acknowledged by `terminal_credit`. */
  terminalInputWindowBytes: 64 * 1024,
  /** Smaller frames count against the rate of their terminal, because an agent can join small pieces. */
  terminalSmallFrameBytes: 4 * 1024,
  terminalSmallFramesPerSecond: 250,
  /** Small frames that a stalled network can deliver together, before the link counts as lost. */
  terminalSmallFrameBurst: 20_000,
} as const;
