/**
 * All errors that Muster returns: the stable code, the HTTP status, whether the same request may succeed later,
 * and a remedy. `docs/errors.md` is generated from this table.
 */
export interface ErrorKind {
  readonly status: number;
  /** Whether the same request may succeed later. */
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
  invalid_input: kind(
    400,
    false,
    'The request is not valid',
    'Fix the fields listed in `errors`, and send the request again.',
  ),
  malformed_request: kind(
    400,
    false,
    'The HTTP request is malformed',
    'Fix the address or the headers. In an address, write a percent sign as `%25`.',
  ),
  malformed_json: kind(
    400,
    false,
    'The body is not the expected JSON',
    'Send one JSON object without duplicate keys, at most 32 levels deep and with at most 20,000 fields.',
  ),
  module_invalid: kind(
    400,
    false,
    'The module is not valid',
    'Fix each error at the line given in `errors`. `muster modules validate` shows the errors without uploading the module.',
  ),
  module_unresolved: kind(
    400,
    false,
    'The modules do not resolve for this agent',
    'Compare the clauses, variants, and expressions listed in `errors` with the attributes of the agent.',
  ),
  module_conflict: kind(
    400,
    false,
    'Two modules declare the same resource differently',
    'Keep the resource in one of the two modules listed in `errors`, or make both declarations equal.',
  ),
  selector_invalid: kind(
    400,
    false,
    'The selector does not parse',
    'Fix the selector at the column given in `errors`. Its terms have the form key=value, key!=value, key in (a,b), key, or !key.',
  ),
  key_invalid: kind(
    400,
    false,
    'The key is not a usable Ed25519 public key',
    'Send the key as 64 hexadecimal characters. `muster operator init` creates a key.',
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
    'A module does not exist',
    'Upload the module first, or fix its name. `muster modules list` lists the modules.',
  ),
  name_required: kind(
    400,
    false,
    'A name is required',
    'Give the agent a name when you approve it for the first time.',
  ),
  unauthenticated: kind(
    401,
    false,
    'Not signed in, or the sign-in session has ended',
    'Sign in again (`muster login`) and send `Authorization: Bearer <token>`.',
  ),
  signature_invalid: kind(
    401,
    false,
    'The signature is not valid',
    'Request a new challenge, and sign its 32 bytes, not their hexadecimal form, with the key that you specified.',
  ),
  login_code_invalid: kind(
    401,
    false,
    'The sign-in code was used or has expired',
    'Create a new link with `muster web-login`. A code works once, for 60 seconds.',
  ),
  ticket_invalid: kind(
    401,
    false,
    'The ticket was used, has expired, or is for another terminal session',
    'Attach to the terminal session again to get a new ticket. A ticket is valid for one connection within 30 seconds.',
  ),
  forbidden: kind(403, false, 'The request requires the admin role', 'Ask an admin to send the request.'),
  terminal_of_another: kind(
    403,
    false,
    'The terminal session belongs to another operator',
    'Open your own terminal session, or ask an admin.',
  ),
  origin_refused: kind(
    403,
    false,
    'The request comes from a page on another host',
    'Use the address of the orchestrator. A proxy in front of it must forward `Host` or be listed in `trusted_proxies`; otherwise, set `public_url` to the address of the proxy.',
  ),
  plaintext_refused: kind(
    403,
    false,
    'Secrets are not accepted over plain HTTP',
    'Use HTTPS, or send the request from the orchestrator’s machine. If a proxy terminates TLS, set `trust_proxy_tls`.',
  ),
  sign_in_unbound: kind(
    403,
    false,
    'The signature would not be bound to this server',
    'Update the client. This orchestrator accepts only sign-ins of form 2 (`sign_in.require_bound`), whose signature names the server; docs/sign-in-by-hand.md describes them.',
  ),
  sign_in_server_unknown: kind(
    403,
    false,
    'The signature is for another server',
    'Check the address at which you signed in. If it leads to this orchestrator, set `public_url`, or add the origin of the address or the key of its proxy to `sign_in.origins`.',
  ),
  operator_unknown: kind(
    403,
    false,
    'The key does not belong to an operator',
    'Use another key, or ask an admin to add an operator with this key. The key of a removed operator cannot be added again.',
  ),
  route_not_found: kind(404, false, 'There is nothing at this address', 'See /openapi.json for all routes.'),
  operator_not_found: kind(
    404,
    false,
    'No such operator',
    'List the operators with `GET /api/v1/operators?include_removed=true`, which includes removed ones.',
  ),
  agent_not_found: kind(404, false, 'No such agent', 'List the agents with `muster agents list`.'),
  tag_not_found: kind(
    404,
    false,
    'The agent has no such tag',
    'Show the tags of the agent with `muster agents show AGENT`.',
  ),
  module_not_found: kind(404, false, 'No such module', 'List the modules with `muster modules list`.'),
  module_file_not_found: kind(
    404,
    false,
    'The module has no such file',
    'List the files of the module with `muster modules show`.',
  ),
  assignment_not_found: kind(404, false, 'No such assignment', 'List the assignments with `muster assignments list`.'),
  operation_not_found: kind(404, false, 'No such operation', 'List the operations with `muster operations list`.'),
  run_not_found: kind(404, false, 'No such run', 'List the runs with `muster runs list`.'),
  drift_not_found: kind(
    404,
    false,
    'No such drift record',
    'List the drift records of the agent with `muster drift AGENT --history`.',
  ),
  window_not_found: kind(
    404,
    false,
    'No such maintenance window',
    'List the maintenance windows with `muster maintenance list`.',
  ),
  kind_not_found: kind(404, false, 'No such kind', 'List the kinds with `muster kinds list`.'),
  agent_offline: kind(
    404,
    true,
    'The agent is offline',
    'See when the agent was last seen with `muster agents list`. A terminal requires a connected agent.',
  ),
  package_not_found: kind(
    404,
    false,
    'No such file to install from',
    'Install the orchestrator from its package, which contains the file. In a clone, run the build first.',
  ),
  terminal_not_found: kind(
    404,
    false,
    'No such terminal session',
    'List the terminal sessions with `muster terminal list`.',
  ),
  session_token_required: kind(
    403,
    false,
    'The request requires a session token',
    'Sign in with `muster`. A browser session cannot be exchanged for a token.',
  ),
  session_not_found: kind(
    404,
    false,
    'No such sign-in session',
    'List your sign-in sessions with `muster sessions list`.',
  ),
  secret_not_found: kind(404, false, 'No such secret', 'List the secrets with `muster secrets list`.'),
  enrolment_token_not_found: kind(
    404,
    false,
    'No such enrollment token',
    'List the enrollment tokens with `muster enrollment-tokens list`.',
  ),
  channel_not_found: kind(404, false, 'No such channel', 'List the channels with `muster channels list`.'),
  notification_not_found: kind(
    404,
    false,
    'No such notification',
    'List the notifications with `muster notifications list`. Old notifications are deleted.',
  ),
  method_not_allowed: kind(
    405,
    false,
    'The address does not support the method',
    'Use one of the methods in the `Allow` header.',
  ),
  request_timeout: kind(
    408,
    true,
    'The request took too long to arrive',
    'Send the request again over a faster connection.',
  ),
  name_taken: kind(409, false, 'The name is in use', 'Choose another name.'),
  key_taken: kind(
    409,
    false,
    'The key is in use',
    'Create a new key. A key belongs to one operator permanently, even after the operator is removed.',
  ),
  agent_named: kind(
    409,
    false,
    'The agent already has another name',
    'Approve the agent under its current name. Names cannot be changed.',
  ),
  agent_not_rejected: kind(409, false, 'Only a rejected agent can be removed', 'Reject the agent first.'),
  agent_not_approved: kind(
    409,
    false,
    'The agent is not approved',
    'Approve the agent first with `muster agents approve`.',
  ),
  assignment_changed: kind(
    409,
    true,
    'The assignment was changed at the same time',
    'Check its current state, then repeat the change if it is still needed.',
  ),
  agent_changed: kind(
    409,
    true,
    'The agent was changed at the same time',
    'Check its current state, then repeat the change if it is still needed.',
  ),
  secret_changed: kind(
    409,
    true,
    'The secret was changed at the same time',
    'Check its current state, then repeat the change if it is still needed.',
  ),
  module_in_use: kind(
    409,
    false,
    'An assignment includes the module, or another module requires it',
    'First remove it from the assignments, or from `requires` of the modules, that `detail` lists.',
  ),
  assignment_audits: kind(
    409,
    false,
    'The assignment is in audit mode',
    'Plan the assignment, or create an assignment with the mode `enforce`.',
  ),
  nothing_applied: kind(
    409,
    false,
    'No module has been applied to this agent yet',
    'Apply a module first. Drift is measured against the last successful apply.',
  ),
  not_drifted: kind(
    409,
    false,
    'The record contains no drift',
    'See the newest drift record of the agent. Only a record that contains drift can be accepted.',
  ),
  drift_superseded: kind(
    409,
    false,
    'A newer check or apply has superseded the record',
    'See the newest record of the agent, and accept or repair its drift.',
  ),
  plan_stale: kind(
    409,
    false,
    'The plan is stale',
    'Plan again. The machine, its desired state, or a secret has changed since the plan.',
  ),
  too_many_channels: kind(409, false, 'There are too many channels', 'Remove a channel that is not needed.'),
  operation_finished: kind(409, false, 'The operation has ended', 'See its outcome with `muster operations show`.'),
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
    'The agent does not allow operators to choose the shell',
    'Omit `shell`, or set `remote_terminal.allow_operator_shell_override` in the configuration of the agent.',
  ),
  terminal_taken_over: kind(
    409,
    false,
    'The terminal was taken over by another connection',
    'Attach to the terminal session again to take it over or to view it.',
  ),
  terminal_closed: kind(
    409,
    false,
    'The terminal session was ended',
    'Open another terminal session. `detail` contains the name of the operator who ended this one.',
  ),
  terminal_idle: kind(
    409,
    false,
    'The terminal received no input for too long',
    'Open another terminal session. `terminals.idle_limit` sets the limit.',
  ),
  terminal_full: kind(
    409,
    false,
    'The output of the terminal session exceeds the limit',
    'Open another terminal session. `terminals.transcript_limit` sets the limit.',
  ),
  terminal_interrupted: kind(
    409,
    true,
    'The terminal session was interrupted',
    'Read the transcript, and open another terminal session. The agent or the orchestrator was lost.',
  ),
  terminal_too_slow: kind(
    409,
    true,
    'The connection reads the output of the terminal too slowly',
    'Attach again. Only viewers are disconnected for this reason.',
  ),
  terminal_at_other_replica: kind(
    409,
    false,
    'The agent is connected to another replica',
    'Check the connections of the replicas with NATS, or send the request to the replica that `detail` names.',
  ),
  replica_not_found: kind(404, false, 'The replica does not exist', 'List the replicas with `muster replicas list`.'),
  last_replica: kind(
    409,
    false,
    'No other replica is ready',
    'Start another replica first, or stop this one without draining it.',
  ),
  replica_stopping: kind(409, false, 'The replica is stopping', 'Start it again when it has stopped.'),
  terminal_ended: kind(
    409,
    false,
    'The terminal session has ended',
    'Read the transcript, or open another terminal session.',
  ),
  secrets_key_shared: kind(
    409,
    false,
    'Replicas share the secrets key',
    'Stop all replicas, rotate the key with one orchestrator without `replica.name`, and copy its `secrets.keys` to the others.',
  ),
  run_finished: kind(409, false, 'The run has ended', 'See its outcome with `muster runs show`.'),
  last_admin: kind(409, false, 'The last admin cannot be removed', 'Add another admin first.'),
  body_too_large: kind(413, false, 'The body is too large', 'Send at most 1 MiB, or at most 2 MiB for a module.'),
  unsupported_media_type: kind(415, false, 'The content type is not supported', 'Send application/json.'),
  headers_too_large: kind(
    431,
    false,
    'The headers are too large',
    'Send at most 16 KiB of headers and address together.',
  ),
  upgrade_required: kind(
    426,
    false,
    'This address accepts only WebSocket connections',
    'Connect with a WebSocket. A proxy in between must forward `Upgrade` and `Connection`.',
  ),
  pending_full: kind(429, true, 'Too many agents wait for approval', 'Approve or reject some of the agents.'),
  rate_limited: kind(
    429,
    true,
    'Too many requests',
    'Wait for the number of seconds in `Retry-After`, then send the request again.',
  ),
  internal: kind(
    500,
    true,
    'Internal error',
    'Find the cause in the log of the orchestrator by the `instance` of this response.',
  ),
  discovery_failed: kind(
    500,
    true,
    'The datagram could not be sent',
    'See `detail`, and check the address and the network.',
  ),
  channel_failed: kind(
    502,
    true,
    'The channel did not accept the message',
    'See `detail` for the HTTP status or the error.',
  ),
  terminal_failed: kind(
    502,
    true,
    'The agent could not start the shell',
    'See `detail` and the log of the agent, and check `remote_terminal` in its configuration.',
  ),
  draining: kind(503, true, 'The orchestrator is stopping', 'Send the request again in a few seconds.'),
  unit_too_large: kind(
    507,
    false,
    'One write is too large',
    'A report from an agent exceeds the limit. Find its operation in the log, and split the modules.',
  ),
  storage_unavailable: kind(
    503,
    true,
    'The database is unavailable',
    'Check the disk of the orchestrator or its PostgreSQL server. Nothing was changed.',
  ),
  outcome_unknown: kind(
    503,
    false,
    'The outcome of the request is unknown',
    'Check the outcome before you send the request again. It may have been served, entirely or in part: the connection to the database or to another replica was lost, the orchestrator was stopped, or an internal error occurred.',
  ),
  secrets_locked: kind(
    503,
    false,
    'An encryption key for secrets is missing',
    'Restore the key, and restart the orchestrator. docs/operations.md lists where keys can be stored.',
  ),
  agent_not_connected: kind(
    504,
    true,
    'The agent is offline',
    'See when the agent was last seen with `muster agents list`, or send `Prefer: respond-async` to queue the operation.',
  ),
  agent_timeout: kind(
    504,
    true,
    'The agent did not respond in time',
    'See when the agent was last seen with `muster agents list`, then try again.',
  ),
  terminal_unrecorded: kind(
    507,
    true,
    'The terminal cannot be recorded',
    'Check the disk of the orchestrator. The terminal session was ended, because every terminal session must be recorded.',
  ),
  storage_full: kind(
    507,
    true,
    'No space left for the database',
    'Free space on the disk of the orchestrator. Nothing was changed.',
  ),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** An error in an input. `path` is a JSON pointer. For modules, `line` and `column` are present and start at 1. */
export interface Fault {
  path: string;
  message: string;
  line?: number;
  column?: number;
}

/** An error in the table, which is sent to the client. Any other error is a bug and is sent as `internal`. */
export class MusterError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly Fault[] | undefined;

  /**
   * @param code entry in the table
   * @param detail what happened in this case, for the operator; must not contain a secret value
   * @param errors one entry for each error in the input
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
