/**
 * Every error that Muster answers with: its stable code, its HTTP status, whether the same request may succeed later,
 * and what to do. `docs/errors.md` is generated from it.
 */
export interface ErrorKind {
  readonly status: number;
  /** True if the identical request may succeed later without a change. */
  readonly retry: boolean;
  readonly title: string;
  /** Instructions for the operator. */
  readonly remedy: string;
}

const kind = (status: number, retry: boolean, title: string, remedy: string): ErrorKind => ({
  status,
  retry,
  title,
  remedy,
});

export const errorKinds = {
  // Input
  invalid_input: kind(400, false, 'The request is not valid', 'Fix the fields that `errors` names, and send it again.'),
  malformed_request: kind(
    400,
    false,
    'The HTTP request is malformed',
    'Fix the address or the headers; a percent sign in an address starts an escape of two hexadecimal digits.',
  ),
  malformed_json: kind(
    400,
    false,
    'The body is not the expected JSON',
    'Send one JSON object without repeated keys, at most 32 levels deep and with at most 20,000 fields.',
  ),
  module_invalid: kind(
    400,
    false,
    'The module has faults',
    'Fix each fault at the line that `errors` names; `muster modules validate` shows them without uploading.',
  ),
  module_unresolved: kind(
    400,
    false,
    'The modules do not resolve for this agent',
    'See `errors` for the clause, variant or expression; compare with the attributes of the agent.',
  ),
  module_conflict: kind(
    400,
    false,
    'Two modules declare the same thing differently',
    'Keep the resource in one of the two modules that `errors` names, or make both equal.',
  ),
  selector_invalid: kind(
    400,
    false,
    'The selector does not parse',
    'See `errors` for the column; terms look like key=value, key!=value, key in (a,b), key, !key.',
  ),
  key_invalid: kind(
    400,
    false,
    'The key is not a usable Ed25519 public key',
    'Send 64 hexadecimal characters; create a key with `muster operator init`.',
  ),
  signature_malformed: kind(
    400,
    false,
    'The signature is malformed',
    'Send the 64 signature bytes as 128 hexadecimal characters.',
  ),
  unknown_module: kind(
    400,
    false,
    'A module is not known',
    'Upload it first, or fix its name; `muster modules list` lists the modules.',
  ),
  name_required: kind(400, false, 'A name is required', 'Give the agent a name when approving it for the first time.'),
  // Identity
  unauthenticated: kind(
    401,
    false,
    'Not signed in, or the sign-in session has ended',
    'Sign in again (`muster login`) and send `Authorization: Bearer <token>`.',
  ),
  signature_invalid: kind(
    401,
    false,
    'The signature does not verify',
    'Ask for a new challenge and sign its 32 bytes, not their hex, with the key you named.',
  ),
  login_code_invalid: kind(
    401,
    false,
    'The sign-in code was used or has expired',
    'A code works once, for 60 seconds. Create a new link with `muster web-login`.',
  ),
  ticket_invalid: kind(
    401,
    false,
    'The ticket was used, has expired, or is for another terminal session',
    'A ticket is valid for one connection to its terminal session, within 30 seconds. Attach to the terminal session again to get a new ticket.',
  ),
  forbidden: kind(403, false, 'Not allowed', 'This needs the role admin; ask an admin.'),
  terminal_of_another: kind(
    403,
    false,
    'The terminal session is another operator’s',
    'Open your own terminal session, or ask an admin.',
  ),
  origin_refused: kind(
    403,
    false,
    'The request comes from a page on another host',
    'Use the address of the orchestrator. A proxy in front must pass on `Host`, be listed in `trusted_proxies`, or have the address in `public_url`.',
  ),
  plaintext_refused: kind(
    403,
    false,
    'Secrets are not accepted over plain HTTP',
    'Use HTTPS, or send it from the orchestrator’s machine. If a proxy terminates TLS, set `trust_proxy_tls`.',
  ),
  sign_in_unbound: kind(
    403,
    false,
    'The signature would not be bound to this server',
    'Update the client: this orchestrator takes sign-ins of form 2 only (sign_in.require_bound), whose signature names the server. docs/sign-in-by-hand.md shows it.',
  ),
  sign_in_server_unknown: kind(
    403,
    false,
    'The signature names another server',
    'Check the address that you signed in at. If it leads to this orchestrator, set `public_url`, or add its origin, or the key of the proxy there, to `sign_in.origins` of the orchestrator.',
  ),
  operator_unknown: kind(
    403,
    false,
    'This key may not sign in',
    'Use another key, or ask an admin to add this one as an operator. The key of a removed operator cannot be added again.',
  ),
  // Objects that do not exist
  route_not_found: kind(404, false, 'There is nothing at this address', 'See /openapi.json for all routes.'),
  operator_not_found: kind(
    404,
    false,
    'No such operator',
    'Use GET /api/v1/operators; `include_removed=true` includes removed operators.',
  ),
  agent_not_found: kind(404, false, 'No such agent', 'List the agents with `muster agents list`.'),
  tag_not_found: kind(404, false, 'The agent has no such tag', 'See its tags with `muster agents list`.'),
  module_not_found: kind(404, false, 'No such module', 'List the modules with `muster modules list`.'),
  assignment_not_found: kind(404, false, 'No such assignment', 'List the assignments.'),
  operation_not_found: kind(404, false, 'No such operation', 'List the operations with `muster operations list`.'),
  run_not_found: kind(404, false, 'No such run', 'List the runs.'),
  drift_not_found: kind(404, false, 'No such drift record', 'List the drift records of the agent.'),
  window_not_found: kind(404, false, 'No such maintenance window', 'List the maintenance windows.'),
  kind_not_found: kind(404, false, 'No such kind', 'List the kinds with `muster kinds list`.'),
  agent_offline: kind(
    404,
    true,
    'The agent is not connected',
    'See when it was last seen with `muster agents list`; a terminal needs a connected agent.',
  ),
  package_not_found: kind(
    404,
    false,
    'No such file to install from',
    'Install the orchestrator from its package, which contains the file; in a clone, build first.',
  ),
  terminal_not_found: kind(404, false, 'No such terminal session', 'List the terminal sessions.'),
  secret_not_found: kind(404, false, 'No such secret', 'List the secrets with `muster secrets list`.'),
  enrolment_token_not_found: kind(404, false, 'No such enrolment token', 'List the enrolment tokens.'),
  channel_not_found: kind(404, false, 'No such channel', 'List the channels with `muster channels list`.'),
  notification_not_found: kind(
    404,
    false,
    'No such notification',
    'List the notifications with `muster notifications list`; old ones are deleted.',
  ),
  method_not_allowed: kind(
    405,
    false,
    'This address does not take that method',
    'Use one of the methods in the `Allow` header.',
  ),
  request_timeout: kind(408, true, 'The request took too long to arrive', 'Send it again, over a better connection.'),
  // Conflict
  name_taken: kind(409, false, 'The name is in use', 'Choose another name.'),
  key_taken: kind(
    409,
    false,
    'The key is in use',
    'A key belongs to one operator permanently, even after removal. Create a new key.',
  ),
  agent_named: kind(
    409,
    false,
    'The agent already has another name',
    'Names are immutable; approve it under the name it has.',
  ),
  agent_not_rejected: kind(409, false, 'Only a rejected agent can be removed', 'Reject it first.'),
  agent_not_approved: kind(409, false, 'The agent is not approved', 'Approve it first: `muster agents approve`.'),
  assignment_changed: kind(
    409,
    true,
    'The assignment changed at the same moment',
    'Check its present state, then repeat the change if it is still needed.',
  ),
  agent_changed: kind(
    409,
    true,
    'The agent changed at the same moment',
    'Check its present state, then repeat the change if it is still needed.',
  ),
  secret_changed: kind(
    409,
    true,
    'The secret changed at the same moment',
    'Check its present state, then repeat the change if it is still needed.',
  ),
  module_in_use: kind(
    409,
    false,
    'An assignment names the module',
    'Take it out of the assignments that `detail` names first.',
  ),
  assignment_audits: kind(
    409,
    false,
    'The assignment only audits',
    'Plan it, or create another one with mode enforce.',
  ),
  nothing_applied: kind(
    409,
    false,
    'No module has been applied to this agent yet',
    'Apply a module first; drift is measured against the last successful apply.',
  ),
  not_drifted: kind(409, false, 'The record found no drift', 'There is nothing to accept: look at the newest record.'),
  drift_superseded: kind(
    409,
    false,
    'There is a newer state of the agent than this record',
    'Look at the newest record of the agent, and accept or repair its drift.',
  ),
  plan_stale: kind(
    409,
    false,
    'The plan no longer fits',
    'Plan again: the machine, its desired state, or a secret has changed since.',
  ),
  too_many_channels: kind(409, false, 'There are too many channels', 'Remove a channel that is not needed.'),
  operation_finished: kind(409, false, 'The operation has ended', 'Nothing is left to cancel.'),
  terminal_disabled: kind(
    409,
    false,
    'The agent offers no terminals',
    'Set `remote_terminal.enabled` in the configuration of the agent.',
  ),
  terminal_limit: kind(409, true, 'Too many terminals are open', 'End a terminal session that is no longer needed.'),
  terminal_shell_refused: kind(
    409,
    false,
    'The agent does not let the shell be chosen',
    'Drop `shell`, or set `remote_terminal.allow_operator_shell_override` in the configuration of the agent.',
  ),
  terminal_taken_over: kind(
    409,
    false,
    'The terminal was taken over by another connection',
    'Attach again to take it back, or to view it.',
  ),
  terminal_closed: kind(
    409,
    false,
    'The terminal session was ended',
    'See `detail` for the operator that ended it; open another terminal session.',
  ),
  terminal_idle: kind(
    409,
    false,
    'The terminal received no input for too long',
    'Open another; `terminals.idle_limit` is the limit.',
  ),
  terminal_full: kind(
    409,
    false,
    'The output of the terminal session exceeds the limit',
    'Open another; `terminals.transcript_limit` is the limit.',
  ),
  terminal_interrupted: kind(
    409,
    true,
    'The terminal session was interrupted',
    'The agent or the orchestrator was lost; read the transcript, and open another terminal session.',
  ),
  terminal_too_slow: kind(
    409,
    true,
    'The connection reads the output of the terminal too slowly',
    'Attach again; only viewers are disconnected for this.',
  ),
  terminal_ended: kind(
    409,
    false,
    'The terminal session has ended',
    'Read the transcript, or open another terminal session.',
  ),
  run_finished: kind(409, false, 'The run has ended', 'Nothing is left to cancel.'),
  last_admin: kind(409, false, 'The last admin cannot be removed', 'Add another admin first.'),
  // Limits
  body_too_large: kind(413, false, 'The body is too large', 'Bodies are up to 1 MiB, modules up to 2 MiB.'),
  unsupported_media_type: kind(415, false, 'The content type is not supported', 'Send application/json.'),
  headers_too_large: kind(431, false, 'The headers are too large', 'Headers and address together are up to 16 KiB.'),
  upgrade_required: kind(
    426,
    false,
    'This address accepts only WebSocket connections',
    'Connect with a WebSocket; a proxy on the way must forward `Upgrade` and `Connection`.',
  ),
  pending_full: kind(429, true, 'Too many agents wait for approval', 'Approve or reject some of them.'),
  rate_limited: kind(429, true, 'Too many requests', 'Wait for the seconds in `Retry-After`.'),
  // Internal errors, and errors of other systems.
  internal: kind(
    500,
    true,
    'Internal error',
    'The orchestrator’s log has the cause under the `instance` of this answer.',
  ),
  discovery_failed: kind(
    500,
    true,
    'The datagram could not be sent',
    'See `detail`; check the address and the network.',
  ),
  channel_failed: kind(
    502,
    true,
    'The channel did not accept the message',
    'See `detail` for the status or the error.',
  ),
  terminal_failed: kind(
    502,
    true,
    'The agent could not start the shell',
    'See `detail`, and the log of the agent; check `remote_terminal` in its configuration.',
  ),
  draining: kind(503, true, 'The orchestrator is stopping', 'Try again in a few seconds.'),
  unit_too_large: kind(
    507,
    false,
    'One write is too large',
    'A report of an agent exceeds the limit: find the operation in the log, and split its modules.',
  ),
  storage_unavailable: kind(
    503,
    true,
    'The database cannot be used',
    'Check the disk of the orchestrator, or its PostgreSQL server; nothing was changed.',
  ),
  outcome_unknown: kind(
    503,
    false,
    'The outcome of the request is unknown',
    'The connection to the database was lost before the commit was confirmed. Check the outcome before you send it again.',
  ),
  secrets_locked: kind(
    503,
    false,
    'A key for secrets is missing',
    'Restore the key, and restart the orchestrator; docs/operations.md lists its possible places.',
  ),
  agent_not_connected: kind(
    504,
    true,
    'The agent is not connected',
    'See when it was last seen with `muster agents list`, or send `Prefer: respond-async` to queue the work.',
  ),
  agent_timeout: kind(
    504,
    true,
    'The agent did not answer in time',
    'See when it was last seen with `muster agents list`, then try again.',
  ),
  terminal_unrecorded: kind(
    507,
    true,
    'The terminal cannot be recorded',
    'Check the disk of the orchestrator. The terminal session was ended, since terminals require a recording.',
  ),
  storage_full: kind(
    507,
    true,
    'No space left for the database',
    'Free space on the disk of the orchestrator; nothing was changed.',
  ),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** A fault of an input. `path` is a JSON pointer. `line` and `column` (from 1) are present for module text. */
export interface Fault {
  path: string;
  message: string;
  line?: number;
  column?: number;
}

/** An error of the table, answered to the client. Any other thrown error is a bug: 500. */
export class MusterError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly Fault[] | undefined;

  /**
   * @param code   entry of the table
   * @param detail details of this case, for the operator; must not contain a secret value
   * @param errors one entry for each fault, for input that does not validate
   */
  constructor(code: ErrorCode, detail?: string, errors?: readonly Fault[]) {
    super(detail ?? errorKinds[code].title);
    this.name = 'MusterError';
    this.code = code;
    this.errors = errors;
  }

  get kind(): ErrorKind {
    return errorKinds[this.code];
  }
}
