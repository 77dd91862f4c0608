/**
 * The API contract as data: every operation with its permission, input, and responses. The route table may add
 * operations and fields, but must not remove or change those listed here. tools/checks/api-contract.test.ts compares
 * the route table, the OpenAPI document, and docs/api.md with the contract.
 */

export interface ContractOperation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path relative to `/api/v1`. */
  readonly path: string;
  readonly access: 'anyone' | 'operator' | 'admin';
  /** Query parameter names. */
  readonly query: readonly string[];
  /** Request body fields, with `?` after optional fields; null if there is no body. */
  readonly body: readonly string[] | null;
  /** The success status comes first. */
  readonly statuses: readonly number[];
  /**
   * Fields of the object in the success response, or of each item in its list. Empty if there is no body, or if the
   * fields vary.
   */
  readonly answer: readonly string[];
  readonly errors: readonly number[];
}

const operator = 'operator_id username role added_at added_by bootstrap removed_at removed_by';
const agent =
  'node_id name status agent_version attributes tags connected connected_at updated_at initial_hostname initial_ip last_seen_at';
const sample =
  'collected_at cpu_usage memory_total memory_used disk_total disk_used uptime load1 swap_used net_rx_bytes net_tx_bytes processes';
const session = 'session_id node_id operator_id status opened_at closed_at';
const moduleEntry = 'name uploaded_at uploaded_by';
const assignment = 'name modules selector description mode window_only parameters created_at created_by';
const operationEntry =
  'operation_id node_id kind status modules requested_by run_id plan_id created_at started_at finished_at summary error';
const operation = `${operationEntry} resources`;
const run = 'run_id assignment kind status started_at finished_at requested_by results';
const drift = 'drift_id node_id status trigger checked_at snapshot_operation_id summary resources error accepted';
const offAgent =
  'node_id name connected last_seen_at reasons drift failed_check failed_operation unapplied pending_removals modules';
const secret = 'name description expires_at restriction created_at created_by updated_at updated_by';
const channel = 'id name channel_type config created_at created_by';
const window = 'id starts_at ends_at reason created_by selector';
const kind = 'name summary platforms executable field_count';
const fanOut = 'batch? max_failures? canary? offline? ttl? plan_run_id?';
const operationPage = 'operations limit offset has_more next_cursor';
const operationQuery = 'limit offset cursor status kind';

/**
 * Each line has the form `METHOD path access`, followed by sections that begin with a sign: `?` for query parameters,
 * `<` for request body fields, `>` for success statuses and response fields, `!` for error statuses.
 */
const fixed = `
POST /auth/challenge anyone < public_key > 200 nonce ! 400 403
POST /auth/verify anyone < public_key signature > 200 token expires_at ! 400 401
GET /operators operator ? include_removed > 200 ${operator}
POST /operators admin < public_key username role? > 201 ${operator} ! 400 403 409
GET /operators/{operator_id} operator > 200 ${operator} ! 404
DELETE /operators/{operator_id} admin > 204 ! 403 404 409

GET /agents operator ? status filter q sort limit offset > 200 ${agent} ! 400
POST /agents/{node_id} operator < status name? > 200 ${agent} ! 400 404 409
DELETE /agents/{node_id} operator > 204 ! 404 409
GET /agents/{node_id}/attributes operator > 200 ! 404
PUT /agents/{node_id}/tags operator < tags > 204 ! 400 404
PUT /agents/{node_id}/tags/{key} operator < value > 204 ! 400 404
DELETE /agents/{node_id}/tags/{key} operator > 204 ! 404
GET /tags operator > 200 tags
POST /discover operator < target? > 200 sent_to ! 400 500

GET /agents/{node_id}/metrics operator ? since limit step > 200 204 node_id samples ! 404
GET /agents/{node_id}/metrics/latest operator > 200 204 ${sample} ! 404

POST /terminal/{node_id} operator ? cols rows shell > 200 session_id ws_url ! 404 409 504
GET /terminal operator ? status > 200 ${session} ! 400
GET /terminal/session/{session_id} operator > 200 ${session} transcript_path viewers ! 404
DELETE /terminal/session/{session_id} operator > 204 ! 403 404
GET /terminal/session/{session_id}/transcript operator ? format > 200 ! 403 404

GET /modules operator > 200 ${moduleEntry}
POST /modules operator < name content > 201 ${moduleEntry} ! 400
GET /modules/{name} operator ? revision > 200 ${moduleEntry} content revision ! 404
DELETE /modules/{name} operator > 204 ! 404 409
GET /assignments operator > 200 ${assignment}
POST /assignments operator < name modules selector description? mode? window_only? parameters? > 201 ${assignment} ! 400 409
GET /assignments/{name} operator > 200 ${assignment} matches ! 404
DELETE /assignments/{name} operator > 204 ! 404
POST /assignments/{name}/apply operator < ${fanOut} > 200 202 ${run} ! 404 409
POST /assignments/{name}/plan operator < ${fanOut} > 200 202 ${run} ! 404
POST /agents/{node_id}/apply operator < modules plan_id? ttl? offline? > 200 202 ${operation} ! 400 404 409 504
POST /agents/{node_id}/plan operator < modules > 200 202 ${operation} ! 400 404 409 504
GET /agents/{node_id}/state operator > 200 node_id applied pending_removals unapplied snapshot_operation_id updated_at ! 404
GET /agents/{node_id}/state/operations operator ? ${operationQuery} > 200 ${operationPage} ! 404
GET /agents/{node_id}/state/operations/{operation_id}/output operator > 200 operation_id output ! 404
GET /state/operations operator ? ${operationQuery} agent > 200 ${operationPage}
GET /state/operations/{operation_id} operator > 200 ${operation} ! 404
POST /agents/{node_id}/drift operator > 200 ${drift} ! 404 409 504
GET /agents/{node_id}/drift operator ? limit status > 200 ${drift} ! 404
GET /agents/{node_id}/drift/latest operator > 200 ${drift} ! 404
GET /drift/{drift_id} operator > 200 ${drift} ! 404

GET /secrets operator > 200 ${secret}
POST /secrets operator < name value description? expires_at? restriction? > 201 ${secret} ! 400 403 409
GET /secrets/{name} operator > 200 ${secret} ! 404
PUT /secrets/{name} operator < description? value? expires_at? restriction? > 200 ${secret} ! 400 403 404
DELETE /secrets/{name} operator > 204 ! 404

GET /channels operator > 200 ${channel}
GET /channels/{id} operator > 200 ${channel} ! 404
POST /channels admin < name channel_type config > 201 ${channel} ! 400 403
PUT /channels/{id} admin < name? config? > 200 ${channel} ! 400 403 404
DELETE /channels/{id} admin > 204 ! 403 404
POST /channels/{id}/test admin > 200 delivered status ! 403 404 502
GET /notifications operator ? unread limit > 200 notifications unread_count
POST /notifications/read-all operator > 204
POST /notifications/{id}/read operator > 204 ! 404
GET /maintenance-windows operator > 200 ${window}
GET /maintenance-windows/{id} operator > 200 ${window} ! 404
POST /maintenance-windows admin < starts_at ends_at reason selector? > 201 ${window} ! 400 403
PUT /maintenance-windows/{id} admin < ends_at? reason? > 200 ${window} ! 400 403 404
DELETE /maintenance-windows/{id} admin > 204 ! 403 404

GET /audit operator ? agent operator event_type category after before cursor limit > 200 events has_more next_cursor ! 400
DELETE /audit admin ? before > 200 deleted ! 400 403
GET /audit/retention operator > 200 retention_days
PUT /audit/retention admin < retention_days? > 200 retention_days ! 400 403
GET /status anyone > 200 status protocol_version public_key version
`;

const beyond = `
POST /auth/logout operator > 204
POST /auth/renew operator > 200 token expires_at
GET /auth/sessions operator > 200 id kind current signed_in_at last_used_at expires_at user_agent address
DELETE /auth/sessions operator > 200 ended
DELETE /auth/sessions/{id} operator > 204 ! 404
GET /auth/session operator > 200 operator_id username role
POST /auth/web-login operator > 200 code url
POST /auth/web-login/redeem anyone < code > 200 token expires_at
POST /operators/{operator_id}/remove admin > 200 operator ended operators_added left ! 403 404 409
GET /runs operator > 200
POST /runs operator < kind node_ids modules ${fanOut} > 200 202 ${run} ! 404 409
GET /runs/{run_id} operator > 200 ${run} ! 404
POST /runs/{run_id}/cancel operator > 200 202 ! 404
POST /state/operations/{operation_id}/cancel operator > 202 ! 404
GET /drift operator ? status filter > 200 ${drift} ! 400
POST /drift/{drift_id}/accept operator < reason > 200 ${drift} ! 400 404 409
DELETE /drift/{drift_id}/accept operator > 200 ${drift} ! 404 409
GET /overview operator > 200 as_of agents drift off runs_running operations secrets_expiring unread_notifications
GET /reconcile operator ? filter reason include_accepted limit offset > 200 ${offAgent} ! 400
PUT /assignments/{name} operator < modules? selector? description? mode? window_only? parameters? > 200 ${assignment} ! 400 404 409
GET /metrics/latest operator ? filter > 200 ! 400
GET /modules/{name}/revisions operator > 200 ! 404
POST /modules/validate operator < content > 200
POST /modules/deps operator < modules > 200 ! 400
POST /selectors/matches operator < selector > 200 matches ! 400
GET /enrolment-tokens admin > 200
POST /enrolment-tokens admin < expires_in? uses? name? tags? approve? > 201 token ! 400
DELETE /enrolment-tokens/{id} admin > 204 ! 404
GET /audit/verify operator > 200
GET /audit/export operator > 200
GET /events operator ? category node_id > 200
GET /kinds operator > 200 ${kind}
GET /kinds/{name} operator > 200 ${kind} fields exclusive ! 404
GET /settings admin > 200
POST /terminal/session/{session_id}/attach operator < mode > 200 ws_url ! 404
`;

function parse(line: string): ContractOperation {
  const [method, path, access, ...words] = line.split(' ');
  const parts: Record<string, string[]> = {};
  let part: string[] = [];
  for (const word of words)
    if (/^[?<>!]$/.test(word)) {
      part = [];
      parts[word] = part;
    } else part.push(word);
  const outcome = parts['>'] ?? [];
  const isStatus = (word: string) => /^\d{3}$/.test(word);
  return {
    method: method as ContractOperation['method'],
    path: path as string,
    access: access as ContractOperation['access'],
    query: parts['?'] ?? [],
    body: parts['<'] ?? null,
    statuses: outcome.filter(isStatus).map(Number),
    answer: outcome.filter((word) => !isStatus(word)),
    errors: (parts['!'] ?? []).map(Number),
  };
}

const operations = (text: string): ContractOperation[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map(parse);

/** The operations in the first release. */
export const fixedOperations: readonly ContractOperation[] = operations(fixed);
/** Operations in later releases. */
export const furtherOperations: readonly ContractOperation[] = operations(beyond);
