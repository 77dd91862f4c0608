/**
 * Link limits, which the agent and the orchestrator enforce on each other. In bytes and milliseconds, unless the name
 * indicates otherwise.
 */
export const limits = {
  /**
   * Maximum size of a text frame from an agent. Small, so that a burst does not permanently enlarge the link's receive
   * buffer.
   */
  agentFrameBytes: 32 * 1024,
  /** Maximum size of a frame from the orchestrator. A frame may contain a desired state with its file contents. */
  orchestratorFrameBytes: 64 * 1024 * 1024,
  /** Maximum number of sent bytes that are neither acknowledged nor credited. */
  unacknowledgedBytes: 8 * 1024,
  /** Maximum length of a report part, in characters. A report is split if it is too large for one frame. */
  reportPartLength: 4 * 1024,
  /** Maximum number of parts per report. A part is shorter than its maximum if its text grows when encoded. */
  reportParts: 4 * 1024,
  /** Maximum length of a report after its parts are joined, in characters. */
  reportLength: 4 * 1024 * 1024,
  /** Maximum number of protocol versions that a hello may offer. */
  helloVersions: 16,
  helloTimeoutMs: 10_000,
  pingIntervalMs: 30_000,
  /** Number of pings without a pong after which the link is lost. */
  missedPings: 3,
  /** Maximum average number of control messages from an agent per second. */
  agentMessagesPerSecond: 500,
  agentMessageBurst: 2_000,
  reconnectBaseMs: 500,
  reconnectCapMs: 60_000,
  /** Maximum backoff if the last link closed less than `recentLinkMs` ago. */
  recentReconnectCapMs: 5_000,
  recentLinkMs: 5 * 60_000,
  /** Minimum duration of a link that resets the backoff. */
  stableLinkMs: 10_000,
  /** Maximum number of consecutive short links after which `recentReconnectCapMs` still applies. */
  shortLinks: 10,
  /** Delay before a rejected or removed agent reconnects. */
  rejectedRetryAfterSecs: 600,
  /** Maximum time to wait for a response on the old link when a second process uses the same key. */
  cloneProbeMs: 5_000,
  /** Maximum number of results per operation: the largest desired state, and the same number of removals. */
  maxResults: 40_000,
  /** Maximum number of resources in an operation. Further results up to `maxResults` are removals. */
  maxResources: 20_000,
  /** Maximum length of the resource name in an output, in characters. */
  outputResourceLength: 4_300,
  /** Maximum number of samples per message, so that they fit into a frame. */
  samplesOfMessage: 48,
  maxAttributes: 512,
  maxAttributeLength: 1024,
  /**
   * Maximum size of all attributes as JSON. The rest of a hello's frame is for 64 open operations, the hostname, and
   * the keys.
   */
  attributesBytes: 24 * 1024,
  maxScriptOutputLength: 256 * 1024,
  /** Maximum size of an `output_progress` frame. Results fit into the other half of the flow-control window. */
  outputProgressBytes: 4 * 1024,
  /**
   * Minimum interval between `output_progress` messages. A message also waits for the response to the previous message.
   */
  outputProgressIntervalMs: 1_000,
  /** Maximum size of the content that a resource references, and of all files of a module together. */
  contentBytes: 512 * 1024 * 1024,
  /** Maximum number of bytes per `content_request`. */
  contentRequestBytes: 64 * 1024,
  /** Maximum number of bytes in pending content requests, and maximum number of such requests. */
  contentWindowBytes: 256 * 1024,
  contentRequests: 16,
  /** Maximum number of content bytes per binary frame. */
  contentFrameBytes: 16 * 1024,
  /** Highest channel number of a terminal on a link. Channel numbers have 32 bits. */
  mostChannel: 0xffff_ffff,
  /** Maximum number of terminal bytes per binary frame. */
  terminalFrameBytes: 16 * 1024,
  /** Maximum terminal output without a `terminal_credit`, in bytes. */
  terminalOutputWindowBytes: 256 * 1024,
  /** Maximum terminal input without a `terminal_credit`, in bytes. */
  terminalInputWindowBytes: 64 * 1024,
  /** Size below which a terminal's frame rate is limited, because an agent can join small chunks of output. */
  terminalSmallFrameBytes: 4 * 1024,
  terminalSmallFramesPerSecond: 250,
  /**
   * Maximum burst of small frames. A stalled network can deliver this many together before the link is considered lost.
   */
  terminalSmallFrameBurst: 20_000,
} as const;
