import { z } from 'zod';
import type { OnlyIf } from '../module/document.ts';
import type { ResolvedResource } from '../module/resolved.ts';
import { operationKinds } from '../operation/operation.ts';
import { verificationSchema } from '../verification.ts';
import { maxAgentAddresses, parseAgentAddress } from './agent-address.ts';
import { limits } from './limits.ts';

/** Control messages from the orchestrator to agents. Each is a text frame of JSON. */

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
const operationId = z.string().length(26);
const tags = z.record(z.string(), z.string());
const channel = z.number().int().min(1).max(limits.mostChannel);
const terminalLength = z.number().int().min(1).max(1000);
const agentStatus = z.enum(['pending', 'approved', 'rejected']);

export const refusalCodes = [
  'protocol_violation',
  'version_unsupported',
  'signature_invalid',
  'token_invalid',
  'pending_full',
  'rejected',
  'removed',
  'cloned',
  'hello_timeout',
  'rate_exceeded',
  'draining',
  'unavailable',
  // Since version 4.
  'key_replaced',
  'key_refused',
  // Since version 5.
  'key_unknown',
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** @param depth maximum nesting of `not` */
function onlyIf(depth: number): z.ZodType<OnlyIf> {
  const leaves = [z.strictObject({ exists: z.string() }), z.strictObject({ command: z.string() })] as const;
  const one = z.union(depth === 0 ? leaves : [...leaves, z.strictObject({ not: onlyIf(depth - 1) })]);
  return z.union([one, z.array(one).min(1).max(16)]);
}

/** Validates only the form. The provider of the kind validates the body. */
const resource = z.strictObject({
  key: z.string(),
  module: z.string(),
  id: z.string().nullable(),
  name: z.string().nullable(),
  type: z.string(),
  identity: z.string(),
  body: z.record(z.string(), z.json()),
  depends_on: z.array(z.string()),
  reload_on: z.array(z.string()),
  restart_on: z.array(z.string()),
  rerun_on: z.array(z.string()),
  /** Since version 7. */
  immediate_on: z.array(z.string()).optional(),
  /** Since version 7. Content to fetch with `content_request` if the agent lacks it. */
  source: z.strictObject({ sha256: hex(32), size: z.number().int().nonnegative().max(limits.contentBytes) }).optional(),
  /** Since version 6; forms other than `exists` since version 7. */
  only_if: onlyIf(4).optional(),
  sensitive_fields: z.array(z.string()),
});

const operation = z.strictObject({
  type: z.literal('operation'),
  operation_id: operationId,
  kind: z.enum(operationKinds),
  modules: z.array(z.string()),
  /** The whole desired state in execution order. Empty for drift, which is measured against the agent's snapshot. */
  resources: z.array(resource),
  /** Modules outside the desired state whose resources the agent leaves unchanged. */
  keep_modules: z.array(z.string()),
  /** For drift, the apply whose snapshot the machine is compared with. */
  snapshot_operation_id: operationId.nullable(),
  /**
   * For an apply that is bound to a plan, the digest of the plan. The apply runs only if a new plan has the same
   * digest.
   */
  plan_digest: hex(32).optional(),
  /** For an apply, the verifications to run afterward, in order. */
  verify: z.array(verificationSchema).optional(),
  /**
   * Since version 7. When the last open maintenance window of the agent closes, in Unix seconds. Absent if none is open,
   * or no resource depends on it.
   */
  window_ends_at: z.number().int().positive().optional(),
});
export type OperationMessage = Omit<z.infer<typeof operation>, 'resources'> & { resources: ResolvedResource[] };

export const orchestratorMessageSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('challenge'),
    nonce: hex(32),
    public_key: hex(32),
    versions: z.array(z.number().int().positive()),
  }),
  /** The agent's record and attributes are committed. */
  z.strictObject({
    type: z.literal('welcome'),
    version: z.number().int().positive(),
    status: agentStatus,
    name: z.string().nullable(),
    tags,
    /** Since version 4. The agent's id, which stays the same when its key changes. */
    node_id: hex(16).optional(),
    /** The highest sequence number of a committed report. The agent deletes reports up to it. */
    acknowledged: z.number().int().nonnegative(),
    /** Seconds between samples. */
    metrics_interval: z.number().int().positive().optional(),
    /** Operations that the hello lists as open and that the orchestrator has recorded as ended. */
    settled_operations: z.array(operationId),
    /** Since version 7. Further addresses of this orchestrator or its replicas, as HOST:PORT. Absent if there are none. */
    addresses: z
      .array(z.string().refine((text) => parseAgentAddress(text) !== null))
      .max(maxAgentAddresses)
      .optional(),
  }),
  z.strictObject({
    type: z.literal('refused'),
    code: z.enum(refusalCodes),
    message: z.string(),
    retry_after_secs: z.number().nonnegative().nullable(),
  }),
  z.strictObject({ type: z.literal('status'), status: agentStatus, name: z.string().nullable(), tags }),
  operation,
  z.strictObject({ type: z.literal('cancel'), operation_id: operationId }),
  /** Every report up to `seq` is committed. */
  z.strictObject({ type: z.literal('ack'), seq: z.number().int().nonnegative() }),
  /** Part of a large report was received. The part no longer counts against the window, but is not committed. */
  z.strictObject({ type: z.literal('credit'), seq: z.number().int().positive(), part: z.number().int().nonnegative() }),
  /** The samples in the last `metrics` were stored, or dropped because of their timestamps. */
  z.strictObject({ type: z.literal('metrics_stored'), collected_at: z.number().int() }),
  /** Since version 3. No sample in the last `metrics` was stored. The agent resends the samples after this delay. */
  z.strictObject({ type: z.literal('metrics_refused'), retry_after_secs: z.number().positive() }),
  /** Since version 2. The last `output_progress` was processed or dropped, and the agent may send the next message. */
  z.strictObject({ type: z.literal('output_taken') }),
  /**
   * Starts a shell. The response is `terminal_opened` or `terminal_refused`. Channels count from 1 on each link and
   * identify the terminal in later messages. Terminal messages require version 3 or later.
   */
  z.strictObject({
    type: z.literal('terminal_open'),
    channel,
    session_id: z.string().length(26),
    cols: terminalLength,
    rows: terminalLength,
    /** The shell to run; null for the shell in the agent's configuration. */
    shell: z.string().max(256).nullable(),
    /** Name of the operator, for the agent's log. */
    operator: z.string().max(256),
  }),
  z.strictObject({ type: z.literal('terminal_resize'), channel, cols: terminalLength, rows: terminalLength }),
  /**
   * Terminates the shell. The response is `terminal_exited`, unless it was already sent, or `terminal_refused` if no
   * shell has started. Later output gets no credit, and the shell exits without waiting for credit.
   */
  z.strictObject({ type: z.literal('terminal_close'), channel, reason: z.string().max(256) }),
  /** Number of output bytes that were processed since the last credit. */
  z.strictObject({ type: z.literal('terminal_credit'), channel, bytes: z.number().int().positive() }),
  /** Since version 7. The response to a `content_request` for content that the agent may not receive. */
  z.strictObject({
    type: z.literal('content_refused'),
    request: z.number().int().min(1).max(limits.mostChannel),
    message: z.string().max(1024),
  }),
  /** The orchestrator is stopping. The agent reconnects after this delay. */
  z.strictObject({ type: z.literal('drain'), retry_after_secs: z.number().nonnegative() }),
]);
export type OrchestratorMessage =
  | Exclude<z.infer<typeof orchestratorMessageSchema>, { type: 'operation' }>
  | OperationMessage;
export type Welcome = Extract<OrchestratorMessage, { type: 'welcome' }>;
