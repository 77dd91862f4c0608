import { z } from 'zod';
import { sampleSchema } from '../metrics.ts';
import { fieldChangeSchema, resourceResultSchema, summarySchema } from '../operation/operation.ts';
import { boundedList, boundedTexts } from './bounded.ts';
import { keyStatementLimits } from './key-statement.ts';
import { limits } from './limits.ts';

/**
 * Control messages from agents to the orchestrator. Each is a text frame of JSON. All content is hostile until it is
 * validated with these schemas.
 */

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
const operationId = z.string().length(26);
const sequence = z.number().int().positive();
const unixSeconds = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const channel = z.number().int().min(1).max(limits.mostChannel);

/** Reasons why an agent does not open a terminal. `failed`: the shell could not be started. */
export const terminalRefusals = ['disabled', 'limit', 'shell_refused', 'failed'] as const;
export type TerminalRefusal = (typeof terminalRefusals)[number];

export const attributesSchema = boundedTexts({
  entries: limits.maxAttributes,
  keyLength: 128,
  valueLength: limits.maxAttributeLength,
});

/** How the agent obtained the orchestrator's key. */
export const pinSources = ['flag', 'pinned', 'first_use', 'discovery'] as const;
export type PinSource = (typeof pinSources)[number];

/** The form of a key statement on the wire. A key statement proves that one key replaced another. */
export const keyStatementSchema = z.strictObject({
  former_key: hex(32),
  made_at: unixSeconds,
  former_until: unixSeconds,
  signature: hex(64),
});

/** Restricted, because the versions of unapproved agents appear in logs, events, and lists. */
export const agentVersionPattern = /^[0-9A-Za-z.+-]{1,64}$/;

export const helloSchema = z.strictObject({
  type: z.literal('hello'),
  versions: boundedList(z.number().int().positive(), { min: 1, max: limits.helloVersions }),
  agent_version: z.string().regex(agentVersionPattern),
  public_key: hex(32),
  signature: hex(64),
  /** Since version 4. Sent while the orchestrator may not know this key. */
  key_statement: keyStatementSchema.optional(),
  /**
   * Since version 5. Statements about earlier keys, newest first. Each certifies the `former_key` of the statement
   * before it.
   */
  earlier_statements: boundedList(keyStatementSchema, { min: 1, max: keyStatementLimits.mostEarlier }).optional(),
  /** Random for each agent process, to distinguish a restarted agent from a cloned agent. */
  instance_id: hex(16),
  pin_source: z.enum(pinSources),
  hostname: z.string().max(255),
  token: z.string().max(128).nullable(),
  attributes: attributesSchema,
  /** Since version 2. Time at which the agent sent the message, by its own clock, in Unix milliseconds. */
  clock_ms: z.number().int().nonnegative().optional(),
  /** All of the agent's operations that the orchestrator has not acknowledged as ended. */
  open_operations: boundedList(
    z.strictObject({ operation_id: operationId, state: z.enum(['accepted', 'running', 'finished']) }),
    { min: 0, max: 64 },
  ),
});

const report = z.discriminatedUnion('type', [
  /** The agent has stored the operation in its journal on disk. */
  z.strictObject({ type: z.literal('accepted'), operation_id: operationId }),
  /**
   * Results in execution order. `position` is the position of the first result. A later report may replace the result
   * at a position.
   */
  z.strictObject({
    type: z.literal('results'),
    operation_id: operationId,
    position: z.number().int().nonnegative().max(limits.maxResults),
    results: boundedList(resourceResultSchema, { min: 1, max: 256 }),
  }),
  z.strictObject({
    type: z.literal('output'),
    operation_id: operationId,
    /** `module/identity` */
    resource: z.string().max(limits.outputResourceLength),
    stdout: z.string().max(limits.maxScriptOutputLength),
    stderr: z.string().max(limits.maxScriptOutputLength),
    exit_code: z.number().int().nullable(),
    truncated: z.boolean(),
  }),
  z.strictObject({
    type: z.literal('finished'),
    operation_id: operationId,
    status: z.enum(['succeeded', 'failed', 'cancelled']),
    summary: summarySchema,
    error: z.string().max(8192).nullable(),
    /** Unix seconds on the agent's clock. */
    started_at: z.number().int(),
    finished_at: z.number().int(),
    /** Digest of a plan, keyed with an agent secret. Equal plans have equal digests. */
    plan_digest: hex(32).optional(),
  }),
]);
export type Report = z.infer<typeof report>;

/** All keys that can occur in a report. Agents cannot choose other keys. */
export const reportKeys: ReadonlySet<string> = new Set(
  [...report.options, resourceResultSchema, fieldChangeSchema, summarySchema].flatMap(({ shape }) =>
    Object.keys(shape),
  ),
);

export const reportsSchema = boundedList(report, { min: 1, max: 64 });

/** Bytes `from` to `to` of a stream. Bytes between two messages were dropped. */
const piece = z.strictObject({
  from: z.number().int().nonnegative(),
  to: z.number().int().nonnegative(),
  text: z.string().max(limits.outputProgressBytes),
});

/** The output of a running program since the last message; if it does not fit, its newest part. */
const outputProgress = z.strictObject({
  type: z.literal('output_progress'),
  operation_id: operationId,
  /** `module/identity` */
  resource: z.string().max(1024),
  stdout: piece.nullable(),
  stderr: piece.nullable(),
});
export type OutputProgress = z.infer<typeof outputProgress>;

export const agentMessageSchema = z.discriminatedUnion('type', [
  helloSchema,
  z.strictObject({
    type: z.literal('attributes'),
    attributes: attributesSchema,
    /** Time at which the agent sent the message, by its own clock, in Unix milliseconds. */
    clock_ms: z.number().int().nonnegative().optional(),
  }),
  /** The agent keeps a report until an `ack` includes its sequence number. */
  z.strictObject({ type: z.literal('report'), seq: sequence, reports: reportsSchema }),
  /** Part of the JSON text of a `reports` array that is too large for one frame. */
  z.strictObject({
    type: z.literal('report_part'),
    seq: sequence,
    part: z.number().int().nonnegative(),
    parts: z.number().int().min(2).max(limits.reportParts),
    text: z.string().min(1).max(limits.reportPartLength),
  }),
  /**
   * Samples, which the agent keeps until `metrics_stored` and otherwise resends on the next link. The agent sends one
   * such message at a time. Since version 3, the response is `metrics_refused` if the samples could not be stored.
   */
  z.strictObject({
    type: z.literal('metrics'),
    samples: boundedList(sampleSchema, { min: 1, max: limits.samplesOfMessage }),
  }),
  /** Since version 2. Best effort, for viewers. The `output` report at the end contains the whole output. */
  outputProgress,
  /** Managed resources that may have drifted and need a check. Best effort. */
  z.strictObject({ type: z.literal('drift_hint'), keys: boundedList(z.string().max(4200), { min: 1, max: 16 }) }),
  /** The shell has started as this user. Terminal messages require version 3 or later. */
  z.strictObject({
    type: z.literal('terminal_opened'),
    channel,
    shell: z.string().max(4096),
    user: z.string().max(256),
  }),
  /** The response to `terminal_open` if no shell has started. */
  z.strictObject({
    type: z.literal('terminal_refused'),
    channel,
    code: z.enum(terminalRefusals),
    message: z.string().max(1024),
  }),
  /** A terminal's last message, after all of its output, even after `terminal_close`. Unknown values are null. */
  z.strictObject({
    type: z.literal('terminal_exited'),
    channel,
    exit_code: z.number().int().min(0).max(255).nullable(),
    /** Name of the signal that terminated the shell, such as `SIGKILL`. */
    signal: z.string().max(32).nullable(),
  }),
  /**
   * Number of input bytes written to the terminal since the last credit; at least a quarter of the flow-control window.
   */
  z.strictObject({ type: z.literal('terminal_credit'), channel, bytes: z.number().int().positive() }),
  /**
   * Since version 7. Requests part of the content that a resource of this open operation references. Responses follow
   * in the order of the requests: content frames with all of these bytes, or `content_refused`. The number and size of
   * pending requests are limited. A part ends at the next multiple of `limits.contentRequestBytes` at the latest.
   */
  z.strictObject({
    type: z.literal('content_request'),
    /** Identifies the request on this link. */
    request: z.number().int().min(1).max(limits.mostChannel),
    operation_id: operationId,
    sha256: hex(32),
    from: z.number().int().nonnegative().max(limits.contentBytes),
    bytes: z.number().int().min(1).max(limits.contentRequestBytes),
  }),
  z.strictObject({
    type: z.literal('bye'),
    reason: z.string().max(256),
    /**
     * Since version 4. The process reconnects immediately with a new key. Until then, the orchestrator accepts no other
     * process for this agent.
     */
    returns: z.literal(true).optional(),
  }),
]);
export type AgentMessage = z.infer<typeof agentMessageSchema>;
export type Hello = Extract<AgentMessage, { type: 'hello' }>;
