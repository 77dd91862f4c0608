/** Caps and times of the channel; both ends hold the other to them. Bytes and milliseconds unless a name says otherwise. */
export const limits = {
  /** Largest text frame an agent may send. Small, so that a burst never grows a link's inbound buffer for good. */
  agentFrameBytes: 32 * 1024,
  /** Largest frame the orchestrator sends: a desired set with its file contents. */
  orchestratorFrameBytes: 64 * 1024 * 1024,
  /** What an agent may have sent without an acknowledgement or a credit. */
  unacknowledgedBytes: 8 * 1024,
  /** Length, in characters, of one piece of a report too large for one frame. */
  reportPartLength: 4 * 1024,
  /** Most pieces of one report; pieces of text that is long once encoded are shorter than they might be. */
  reportParts: 4 * 1024,
  /** Largest report once its pieces are put together, in characters. */
  reportLength: 4 * 1024 * 1024,
  /** Protocol versions that a hello may offer. */
  helloVersions: 16,
  /** The hello must be there by then. */
  helloTimeoutMs: 10_000,
  pingIntervalMs: 30_000,
  /** Lost after so many pings without an answer. */
  missedPings: 3,
  /** Control messages an agent may send in a second, on average. */
  agentMessagesPerSecond: 500,
  agentMessageBurst: 2_000,
  reconnectBaseMs: 500,
  reconnectCapMs: 60_000,
  /** Longest wait while the last link ended less than `recentLinkMs` ago. */
  recentReconnectCapMs: 5_000,
  recentLinkMs: 5 * 60_000,
  /** A link that lived this long resets the backoff. */
  stableLinkMs: 10_000,
  /** Shorter links in a row after which they no longer count as recent. */
  shortLinks: 10,
  /** A rejected or removed agent is told to come back after this. */
  rejectedRetryAfterSecs: 600,
  /** An agent with another instance's key waits so long for the old link's answer. */
  cloneProbeMs: 5_000,
  /** Results of one operation: what a desired set may hold, and as much again that is removed. */
  maxResults: 40_000,
  /** Resources of one operation that its agent was sent; the others of `maxResults` are removals. */
  maxResources: 20_000,
  /** Name of the resource in an output, in characters. */
  outputResourceLength: 4_300,
  /** Samples of one message: what a frame holds. */
  samplesOfMessage: 48,
  maxAttributes: 512,
  maxAttributeLength: 1024,
  /** All attributes as JSON: the rest of a hello's frame is for 64 open operations, the name of the host and the keys. */
  attributesBytes: 24 * 1024,
  maxScriptOutputLength: 256 * 1024,
  /** Largest frame of `output_progress`: half of the window, so that results still go beside it. */
  outputProgressBytes: 4 * 1024,
  /** An agent sends no two of them faster than this, and none before the last was answered. */
  outputProgressIntervalMs: 1_000,
  /** The largest number of a terminal on a link: 32 bits. */
  mostChannel: 0xffff_ffff,
  /** Bytes of a terminal in one binary frame. */
  terminalFrameBytes: 16 * 1024,
  /** What an agent may have sent of one terminal's output that was not given back by `terminal_credit`. */
  terminalOutputWindowBytes: 256 * 1024,
  /** What an orchestrator may have sent of what is typed into one terminal, likewise. */
  terminalInputWindowBytes: 64 * 1024,
  /** Frames of fewer bytes count against the rate of their terminal: an agent puts together what comes in drops. */
  terminalSmallFrameBytes: 4 * 1024,
  terminalSmallFramesPerSecond: 250,
  /** What the network held back comes at once: all that comes in drops until the link would count as lost. */
  terminalSmallFrameBurst: 20_000,
} as const;
