import {
  type Agent,
  type AuditEvent,
  apiPrefix,
  type Channel,
  getAgent,
  getOperation,
  getOverview,
  latestSamples,
  listAgents,
  listAssignments,
  listAudit,
  listChannels,
  listModules,
  listNotifications,
  listOperations,
  listReconcile,
  listRuns,
  listSecrets,
  listWindows,
  matchSelector,
  type Notification,
  type OffAgent,
  type Operation,
  planAgent,
  type Route,
  type RunEntry,
  routes,
  type Window,
} from '@muster/protocol/http';
import type { Page } from 'playwright-core';

/**
 * Responds to the page's reads with the fixed data below or with the route's example, so that screenshots are identical
 * in each run. The orchestrator handles sign-in and the event stream.
 */

/** Time of the data in Unix seconds. All times are sent relative to the current time. */
const now = 1_795_000_300;
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

const example = <T>(route: Route): T => route.example.answer as T;
const iso = (at: number): string => new Date(at * 1000).toISOString();
/** Returns an ID in the orchestrator's format. */
const idOf = (number: number): string => `01KAGZ5R3E5F6G7H8J9K0M1${String(number).padStart(3, '0')}`;
const nodeOf = (number: number): string => (number + 1).toString(16).padStart(32, 'a');

const names = [
  ...Array.from({ length: 12 }, (_, at) => `web-paris-${at + 1}`),
  ...Array.from({ length: 6 }, (_, at) => `db-berlin-${at + 1}`),
  ...['edge-1', 'edge-2', 'build-1', 'kiosk-3'],
];
const agents: Agent[] = names.map((name, at) => ({
  ...example<Agent>(getAgent),
  ...{ node_id: nodeOf(at), name, initial_hostname: name, connected: at % 9 !== 8 },
  tags: { role: name.split('-')[0] as string, site: name.split('-')[1] as string, ring: at % 2 === 0 ? 'a' : 'b' },
  ...{ connected_at: now - 3 * hour - at * minute, last_seen_at: now - 40 * minute },
}));
const pending: Agent = {
  ...agents[0]!,
  ...{ node_id: nodeOf(99), name: null, initial_hostname: 'new-machine', status: 'pending', connected: true, tags: {} },
};

const summary = (changed: number, failed = 0) => ({
  ...{ total: 8, unchanged: 8 - changed - failed, changed, removed: 0, failed, skipped: 0 },
});
const operation = (at: number, more: Partial<Operation>): Operation => ({
  ...example<Operation>(getOperation),
  ...{ operation_id: idOf(at), node_id: nodeOf(at), created_at: now - at * 7 * minute - 30 },
  ...{ started_at: now - at * 7 * minute - 30, finished_at: now - at * 7 * minute - 18, summary: summary(2) },
  ...more,
});
const operations: Operation[] = [
  operation(1, { status: 'running', finished_at: null, summary: summary(1) }),
  operation(2, { kind: 'plan' }),
  operation(3, {}),
  operation(4, { status: 'failed', error: 'a resource failed', summary: summary(1, 1) }),
  operation(5, { status: 'cancelled' }),
];

const [offExample] = example<[OffAgent]>(listReconcile);
/** An agent that is out of sync, and an agent that is only outdated. */
const off: OffAgent[] = [
  { ...offExample, node_id: nodeOf(2), name: names[2]! },
  {
    ...{ ...offExample, node_id: nodeOf(14), name: names[14]!, reasons: [], drift: [], failed_operation: null },
    ...{ unapplied: 0, unfinished: [] },
  },
];

const run = (at: number, more: Partial<RunEntry>): RunEntry => {
  const started_at = now - at * 50 * minute - 30;
  return { ...example<RunEntry[]>(listRuns)[0]!, run_id: idOf(at), started_at, finished_at: started_at + 25, ...more };
};
const outcomes = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, running: 0, waiting: 0 };
const runs: RunEntry[] = [
  run(1, {
    ...{ status: 'running', finished_at: null, assignment: 'web' },
    outcomes: { ...outcomes, succeeded: 14, running: 2, waiting: 4 },
  }),
  run(2, { kind: 'plan', assignment: 'web', outcomes: { ...outcomes, succeeded: 20 } }),
  run(3, {
    ...{ status: 'halted', assignment: 'web' },
    outcomes: { ...outcomes, failed: 1, skipped: 19 },
  }),
  run(4, { assignment: null, status: 'failed' }),
];

const event = (at: number, event_type: string, text: string, more: Partial<AuditEvent> = {}): AuditEvent => ({
  ...example<{ events: AuditEvent[] }>(listAudit).events[0]!,
  ...{ id: idOf(at), event_type, summary: text, timestamp: iso(now - at * 6 * minute - 30), ...more },
});
const events: AuditEvent[] = [
  event(1, 'agent.pending', 'agent new-machine is pending approval', { severity: 'warning' }),
  event(2, 'state.applied', 'apply on web-paris-1 succeeded'),
  event(3, 'module.uploaded', 'module web uploaded as revision 4'),
  event(4, 'agent.lost', 'agent kiosk-3 is offline', { severity: 'critical' }),
  ...(['console_opened', 'signed_in', 'web_login_requested'] as const).map((type, at) =>
    event(5, `auth.${type}`, `ada ${type.replaceAll('_', ' ')}`, {
      ...{ id: idOf(50 + at), timestamp: iso(now - 30 * minute - 30 - at) },
    }),
  ),
  event(6, 'drift.detected', 'web-paris-4 has drifted', { severity: 'warning' }),
  event(7, 'assignment.created', 'assignment db created', { timestamp: iso(now - day) }),
];

const notification = (
  at: number,
  event_type: string,
  text: string,
  more: Partial<Notification> = {},
): Notification => ({
  ...example<{ notifications: Notification[] }>(listNotifications).notifications[0]!,
  ...{ id: idOf(at), event_id: idOf(at), event_type, summary: text, severity: 'warning', read: at > 5 },
  ...{ timestamp_ms: (now - at * 11 * minute - 30) * 1000, ...more },
});
const notifications: Notification[] = [
  notification(1, 'agent.pending', 'agent new-machine is pending approval'),
  notification(2, 'agent.pending', 'agent new-machine-2 is pending approval'),
  notification(3, 'agent.lost', 'agent kiosk-3 is offline', { severity: 'critical' }),
  notification(6, 'drift.detected', 'web-paris-4 has drifted', { suppressed: true }),
  notification(7, 'secret.expiring', 'secret tls_key expires soon'),
];

const channel = (at: number, more: Partial<Channel>): Channel => ({
  ...example<Channel[]>(listChannels)[0]!,
  ...{ id: idOf(at), created_at: now - at * 9 * day, ...more },
});
const channels: Channel[] = [
  channel(1, {}),
  channel(2, {
    ...{ name: 'operations', channel_type: 'slack', config: { webhook_url: 'https://hooks.slack.com/••••' } },
    delivery: {
      ...{ last_delivered_at: now - 5 * hour - 30, last_error: 'the receiver answered 500', failures: 7 },
      ...{ failing_since: now - 4 * hour - 30, next_attempt_at: null },
    },
  }),
];

const window = (at: number, starts_at: number, hours: number, more: Partial<Window>): Window => ({
  ...example<Window[]>(listWindows)[0]!,
  ...{ id: idOf(at), starts_at, ends_at: starts_at + hours * hour, ...more },
});
const windows: Window[] = [
  window(1, now - hour, 2, {}),
  window(2, now + 26 * hour, 4, { reason: 'new switches in Berlin', selector: 'site=berlin' }),
  window(3, now + 8 * day, 2, { reason: 'yearly test of the power supply', selector: null }),
  window(4, now - 3 * day, 3, { reason: 'database upgrade', selector: 'role=db' }),
];

/** Query parameters of a request. */
type Query = Readonly<Record<string, string | undefined>>;

/** Responses by route ID, as values or as functions of the query. All other reads receive their route's example. */
const answers: Readonly<Record<string, unknown>> = {
  [getOverview.id]: {
    ...example<object>(getOverview),
    as_of: now,
    agents: { pending: 1, rejected: 0, approved: 1_240, connected: 1_229, lost: 8 },
    drift: { in_sync: 1_200, drifted: 12, accepted: 3, failed: 1, unchecked: 24 },
    desired_state: { in_sync: 1_206, outdated: 6, accepted: 3, out_of_sync: 7, never_applied: 24 },
  },
  [listAgents.id]: [...agents, pending],
  [latestSamples.id]: Object.fromEntries(
    agents.map(({ node_id }, at) => [
      node_id,
      {
        ...(Object.values(example<Record<string, object>>(latestSamples))[0] ?? {}),
        ...{ cpu_usage: (at * 13) % 100, memory_used: ((at * 7) % 100) * 1e8, memory_total: 1e10 },
      },
    ]),
  ),
  [listOperations.id]: {
    ...example<object>(listOperations),
    operations: operations.map(({ resources: _, ...entry }) => entry),
    next_cursor: null,
  },
  [listRuns.id]: ({ status, kind, latest }: Query) =>
    runs
      .filter((run) => (status ?? run.status) === run.status && (kind ?? run.kind) === run.kind)
      .filter(
        ({ assignment }, at, all) =>
          latest !== 'true' || all.findIndex((other) => other.assignment === assignment) === at,
      ),
  [listAudit.id]: { ...example<object>(listAudit), events, next_cursor: null },
  [listNotifications.id]: { ...example<object>(listNotifications), notifications, unread_count: 3 },
  [listChannels.id]: channels,
  [listWindows.id]: windows,
  // The page of an agent requests only its own entry.
  [listReconcile.id]: ({ agent }: Query) => off.filter(({ node_id }) => agent === undefined || agent === node_id),
  // The agents page requests the agents without a successful apply.
  [matchSelector.id]: { matches: [nodeOf(20)] },
  [listAssignments.id]: ['base', 'db', 'web'].map((name) => ({
    ...example<object[]>(listAssignments)[0],
    ...{ name, selector: name === 'base' ? 'all' : `role=${name}` },
  })),
  [listModules.id]: ['base', 'db', 'motd', 'web'].map((name) => ({ ...example<object[]>(listModules)[0], name })),
  [listSecrets.id]: ['db_password', 'tls_key'].map((name) => ({
    ...example<object[]>(listSecrets)[0],
    ...{
      name,
      expires_at: name === 'tls_key' ? iso(now + 12 * day + hour) : null,
      updated_at: iso(now - 2 * day - 30),
    },
  })),
};

function answerOf({ id, example: { answer } }: Route, query: Query): unknown {
  const found = Object.hasOwn(answers, id) ? answers[id] : answer;
  return typeof found === 'function' ? found(query) : found;
}

/** Reports whether the orchestrator handles a read. */
const isReal = (id: string, path: string): boolean => /session|stream/i.test(id) || /events|sessions/.test(path);

/** Shifts all times in the data by a number of seconds. The times are in 2026 and 2027. */
function moved(value: unknown, by: number): unknown {
  if (typeof value === 'number') {
    if (value > 1.79e9 && value < 1.81e9) return value + by;
    return value > 1.79e12 && value < 1.81e12 ? value + by * 1000 : value;
  }
  if (typeof value === 'string')
    return /^202\d-\d\d-\d\dT[\d:.]+Z$/.test(value) ? iso(Date.parse(value) / 1000 + by) : value;
  if (Array.isArray(value)) return value.map((each) => moved(each, by));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, moved(each, by)]));
}

/** Requests with a body that change nothing. */
const harmless: readonly string[] = [planAgent.id, matchSelector.id];
/** All reads, and requests that change nothing. */
const reads = routes
  .filter(({ method, media, id }) => (method === 'GET' || harmless.includes(id)) && media === undefined)
  // Paths without parameters come first, so that their last segment is not read as a name.
  .toSorted((one, other) => one.path.split('{').length - other.path.split('{').length)
  .map((route) => ({ route, pattern: new RegExp(`^${apiPrefix}${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }));

/**
 * Responds to the page's reads with fixed data.
 * @throws Error if a response does not have the shape that the route table requires
 */
export async function fixApi(page: Page): Promise<void> {
  for (const { route } of reads)
    if (Object.hasOwn(answers, route.id)) route.answers[200]?.parse(JSON.parse(JSON.stringify(answerOf(route, {}))));
  await page.route(`**${apiPrefix}/**`, async (intercepted) => {
    const request = intercepted.request();
    const { pathname, searchParams } = new URL(request.url());
    const found = reads.find(({ route, pattern }) => route.method === request.method() && pattern.test(pathname));
    if (found === undefined || isReal(found.route.id, pathname)) return intercepted.continue();
    const answer = answerOf(found.route, Object.fromEntries(searchParams));
    await intercepted.fulfill({ json: moved(answer, Math.floor(Date.now() / 1000) - now) });
  });
}
