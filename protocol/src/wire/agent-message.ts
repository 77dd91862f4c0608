import { z } from 'zod';
import { sampleSchema } from '../metrics.ts';
import { fieldChangeSchema, resourceResultSchema, summarySchema } from '../operation.ts';
import { boundedList, boundedTexts } from './bounded.ts';
import { keyStatementLimits } from './key-statement.ts';
import { limits } from './limits.ts';

/** Agent to orchestrator: control messages, one JSON text frame each. All of it is hostile until it passed these schemas. */

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
const operationId = z.string().length(26);
const sequence = z.number().int().positive();
const unixSeconds = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const channel = z.number().int().min(1).max(limits.mostChannel);

/** Why an agent opens no terminal. `failed`: it was to be, and could not. */
export const terminalRefusals = ['disabled', 'limit', 'shell_refused', 'failed'] as const;
export type TerminalRefusal = (typeof terminalRefusals)[number];

export const attributesSchema = boundedTexts({
  entries: limits.maxAttributes,
  keyLength: 128,
  valueLength: limits.maxAttributeLength,
});

/** Where the agent's knowledge of the orchestrator's key came from. */
export const pinSources = ['flag', 'pinned', 'first_use', 'discovery'] as const;
export type PinSource = (typeof pinSources)[number];

/** How a key came in the place of another, as it goes over the wire. */
export const keyStatementSchema = z.strictObject({
  former_key: hex(32),
  made_at: unixSeconds,
  former_until: unixSeconds,
  signature: hex(64),
});

/** What is said of itself by an agent that nobody has approved stands in logs, events and lists. */
export const agentVersionPattern = /^[0-9A-Za-z.+-]{1,64}$/;

export const helloSchema = z.strictObject({
  type: z.literal('hello'),
  versions: boundedList(z.number().int().positive(), { min: 1, max: limits.helloVersions }),
  agent_version: z.string().regex(agentVersionPattern),
  public_key: hex(32),
  signature: hex(64),
  /** Since version 4: shown while an orchestrator may not know this key. */
  key_statement: keyStatementSchema.optional(),
  /** Since version 5: statements on the keys before that, newest first; each is on the `former_key` of the one before it. */
  earlier_statements: boundedList(keyStatementSchema, { min: 1, max: keyStatementLimits.mostEarlier }).optional(),
  /** New with each agent process: tells a restarted agent from a cloned one. */
  instance_id: hex(16),
  pin_source: z.enum(pinSources),
  hostname: z.string().max(255),
  token: z.string().max(128).nullable(),
  attributes: attributesSchema,
  /** Since version 2: Unix milliseconds on the agent's clock as this is sent. */
  clock_ms: z.number().int().nonnegative().optional(),
  /** Every operation the agent holds that the orchestrator has not acknowledged as finished. */
  open_operations: boundedList(
    z.strictObject({ operation_id: operationId, state: z.enum(['accepted', 'running', 'finished']) }),
    { min: 0, max: 64 },
  ),
});

const report = z.discriminatedUnion('type', [
  /** The operation is in the journal, on disk. */
  z.strictObject({ type: z.literal('accepted'), operation_id: operationId }),
  /** Results in execution order; `position` is that of the first. A position sent again replaces the one before. */
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
    /** Of a plan: all that it would do, summed up under a key of the agent's own. Equal plans have equal ones. */
    plan_digest: hex(32).optional(),
  }),
]);
export type Report = z.infer<typeof report>;

/** Every key that stands anywhere in a report: no part of one has keys of the agent's choice. */
export const reportKeys: ReadonlySet<string> = new Set(
  [...report.options, resourceResultSchema, fieldChangeSchema, summarySchema].flatMap(({ shape }) =>
    Object.keys(shape),
  ),
);

export const reportsSchema = boundedList(report, { min: 1, max: 64 });

/** A piece of a stream: bytes `from` up to `to` of it. What is missing between two pieces was given up. */
const piece = z.strictObject({
  from: z.number().int().nonnegative(),
  to: z.number().int().nonnegative(),
  text: z.string().max(limits.outputProgressBytes),
});

/** What a program that is running has printed since the last of these; the newest when that is more than one holds. */
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
    /** As in the hello. */
    clock_ms: z.number().int().nonnegative().optional(),
  }),
  /** What must not be lost. Kept by the agent until `ack` names its sequence number. */
  z.strictObject({ type: z.literal('report'), seq: sequence, reports: reportsSchema }),
  /** A piece of the JSON text of a `reports` array that is too large for one frame. */
  z.strictObject({
    type: z.literal('report_part'),
    seq: sequence,
    part: z.number().int().nonnegative(),
    parts: z.number().int().min(2).max(limits.reportParts),
    text: z.string().min(1).max(limits.reportPartLength),
  }),
  /**
   * What was measured, at several times when the link was down meanwhile. Kept by the agent until `metrics_stored`, and
   * sent again on the next link; one such message at a time. Version 3 is told `metrics_refused` when they were not kept.
   */
  z.strictObject({
    type: z.literal('metrics'),
    samples: boundedList(sampleSchema, { min: 1, max: limits.samplesOfMessage }),
  }),
  /** Since version 2. Best effort, and only for those who watch: the `output` report has all of it at the end. */
  outputProgress,
  /** Something changed under managed resources: worth a check. Best effort. */
  z.strictObject({ type: z.literal('drift_hint'), keys: boundedList(z.string().max(4200), { min: 1, max: 16 }) }),
  /** Since version 3, as are the others of terminals: the shell runs, as this user. */
  z.strictObject({
    type: z.literal('terminal_opened'),
    channel,
    shell: z.string().max(4096),
    user: z.string().max(256),
  }),
  /** The answer to `terminal_open` where none runs. */
  z.strictObject({
    type: z.literal('terminal_refused'),
    channel,
    code: z.enum(terminalRefusals),
    message: z.string().max(1024),
  }),
  /** After all that it has shown, and the last that is said of it: also after `terminal_close`. Null: not known. */
  z.strictObject({
    type: z.literal('terminal_exited'),
    channel,
    exit_code: z.number().int().min(0).max(255).nullable(),
    /** Its name, such as `SIGKILL`, when one ended it. */
    signal: z.string().max(32).nullable(),
  }),
  /** So much of what was typed has gone into the terminal: said in steps of at least a quarter of the window. */
  z.strictObject({ type: z.literal('terminal_credit'), channel, bytes: z.number().int().positive() }),
  z.strictObject({
    type: z.literal('bye'),
    reason: z.string().max(256),
    /** Since version 4: the same process comes back at once, to show a new key, and until then nobody else is let in. */
    returns: z.literal(true).optional(),
  }),
]);
export type AgentMessage = z.infer<typeof agentMessageSchema>;
export type Hello = Extract<AgentMessage, { type: 'hello' }>;
