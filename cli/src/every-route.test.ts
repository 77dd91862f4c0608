import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Route, routes } from '@muster/protocol/http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, type Seen, type Standing, standIn } from '../test/orchestrator.ts';
import { makeHome, musterHere, type Ran } from '../test/process.ts';

// Runs every command line in the table, and expects it to call its route. The server validates the request.

const ulid = '01KAGZ4D3E5F6G7H8J9K0M1N2P';
const key = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

/**
 * Command lines by ID of the route that each must call. Contains only routes for which {@link usualLine} returns a
 * different command line. FILE is replaced with a module file.
 */
const unusual: Readonly<Record<string, string>> = {
  challenge: 'login',
  verify: 'login',
  logout: 'logout',
  renew: 'agents list',
  webLogin: 'web-login',
  listSessions: 'sessions list',
  endSession: `sessions end ${ulid}`,
  endSessions: 'sessions end --all',
  addOperator: `operator add grace ${key}`,
  getOperator: 'operator whoami',
  removeOperatorReporting: 'operator remove ada --yes',
  setAgentStatus: 'agents reject web-1',
  getAttributes: 'agents attributes web-1',
  listValues: 'agents values web-1',
  putTags: 'tags replace web-1 role=web --yes',
  putTag: 'tags set web-1 role=web',
  deleteTag: 'tags remove web-1 role',
  matchSelector: 'selectors match role=web',
  createEnrolmentToken: 'enrolment-tokens create',
  revokeEnrolmentToken: `enrolment-tokens revoke ${ulid}`,
  listSamples: 'metrics show web-1 --csv',
  latestSample: 'metrics list web-1',
  latestSamples: 'metrics list',
  discover: 'discover --wait 0s',
  uploadModule: 'modules upload FILE',
  getModuleFile: 'modules download motd -o OUT',
  listModuleRevisions: 'modules history motd',
  validateModule: 'modules check FILE --orchestrator',
  orderModules: 'modules deps motd',
  createAssignment: 'assignments create base -m motd --selector role=web',
  updateAssignment: 'assignments update base --selector role=web',
  applyAssignment: 'assignments apply base --yes --remove',
  planAssignment: 'assignments plan base',
  applyAgent: 'apply web-1 -m motd --yes',
  planAgent: 'plan web-1 -m motd',
  getState: 'state show web-1',
  listAgentOperations: 'operations list --agent web-1',
  getOperationOutput: `operations output ${ulid}`,
  listOperations: 'operations list',
  getOperation: `operations show ${ulid}`,
  cancelOperation: `operations cancel ${ulid}`,
  startRun: 'plan -l role=web -m motd',
  cancelRun: `runs cancel ${ulid}`,
  checkDrift: 'drift web-1',
  listDrift: 'drift web-1 --history',
  listLatestDrift: 'drift',
  latestDrift: 'drift web-1 --latest',
  getDrift: `drift --record ${ulid}`,
  acceptDrift: `drift --record ${ulid} --accept known`,
  unacceptDrift: 'drift web-1 --unaccept',
  getOverview: 'overview',
  listReconcile: 'out-of-sync',
  exportAudit: 'audit export -o OUT',
  verifyAudit: 'audit verify',
  pruneAudit: 'audit prune --before 365d --yes',
  getAuditRetention: 'audit retention show',
  setAuditRetention: 'audit retention set 365 --yes',
  followEvents: 'events',
  createChannel: 'channels add ops slack --to https://hooks.example/x',
  getChannel: 'channels show CHANNEL',
  updateChannel: 'channels update CHANNEL --name ops',
  removeChannel: 'channels remove CHANNEL --yes',
  testChannel: 'channels test CHANNEL',
  readNotification: `notifications read ${ulid}`,
  readAllNotifications: 'notifications read --all',
  createSecret: 'secrets set fresh --file FILE',
  updateSecret: 'secrets update db_password --expires 90d',
  rotateSecretsKey: 'secrets rotate-key',
  createWindow: 'windows add updates --for 2h',
  updateWindow: `windows end ${ulid}`,
  getSettings: 'settings show',
  drainReplica: 'replicas drain muster-1 --no-wait',
  undrainReplica: 'replicas undrain muster-1 --no-wait',
  getStatus: 'status',
  getHealth: 'doctor',
  openTerminal: 'terminal open web-1',
  getTerminal: `terminal show ${ulid}`,
  closeTerminal: `terminal close ${ulid}`,
  attachTerminal: `terminal attach ${ulid} --view`,
  getTranscript: `terminal download ${ulid} -o OUT`,
};

/** Routes that no command calls: browser-only routes, and one that removeOperatorReporting replaces. */
const notHere: readonly string[] = ['redeemWebLogin', 'openConsoleSession', 'getSession', 'removeOperator'];

/** Returns the command that a route usually has, such as `secrets show NAME` for `GET /secrets/{name}`. */
function usualLine({ method, path, example }: Route): string {
  const [noun = '', item] = path.slice(1).split('/');
  const named = Object.values(example.params ?? {}).join(' ');
  const given = Object.values(example.body ?? {})
    .map((value) => String(value).replaceAll(' ', '_'))
    .join(' ');
  if (method === 'GET') return item === undefined ? `${noun} list` : `${noun} show ${named}`;
  return method === 'DELETE' ? `${noun} remove ${named} --yes` : `${noun} create ${given}`;
}

const typed: Readonly<Record<string, string>> = Object.fromEntries(
  routes.filter(({ id }) => !notHere.includes(id)).map((route) => [route.id, unusual[route.id] ?? usualLine(route)]),
);

let home: Awaited<ReturnType<typeof makeHome>>;
let folder: string;
let server: Standing;
let env: Record<string, string>;

/** Responses by route ID. They replace examples with which a command would not call its route or would not exit. */
const answers: Record<string, (seen: Seen) => Answer | undefined> = {
  // Refuses the second request, so that the command exits.
  followEvents: () => ({ code: 'forbidden', detail: 'not here' }),
  getSecret: ({ params }) =>
    params.name === 'fresh' ? { code: 'secret_not_found', detail: 'there is none' } : undefined,
  openTerminal: () => ({ code: 'agent_offline', detail: 'not here' }),
  attachTerminal: () => ({ code: 'terminal_ended', detail: 'not here' }),
};

beforeAll(async () => {
  server = await standIn({ answers });
  home = await makeHome();
  folder = await mkdtemp(join(tmpdir(), 'muster-routes-'));
  await writeFile(
    join(folder, 'motd.yml'),
    'name: motd\nsupports: [{ platform: linux }]\nresources:\n  - id: motd\n    resource: { file-unix: { path: /etc/motd, content: "x" } }\n',
  );
  env = { ...home.env, MUSTER_URL: server.url };
  expect((await musterHere(['operator', 'init'], env)).exit).toBe(0);
});
afterAll(async () => {
  await server.close();
  await home.remove();
  await rm(folder, { recursive: true, force: true });
});

/** Replaces the stored token with one that expires soon. */
async function age({ XDG_CACHE_HOME = '' }: Record<string, string>): Promise<void> {
  const sessions = join(XDG_CACHE_HOME, 'muster', 'sessions');
  for (const name of await readdir(sessions)) {
    const token = JSON.parse(await readFile(join(sessions, name), 'utf8')) as { expires_at: number };
    await writeFile(join(sessions, name), JSON.stringify({ ...token, issued_at: token.expires_at - 36_000 }));
  }
}

const wordsOf = (id: string, line: string): string[] => {
  const channel = routes.find((route) => route.id === 'listChannels')?.example.answer as { name: string }[];
  return line
    .replace('FILE', join(folder, 'motd.yml'))
    .replace('OUT', join(folder, id))
    .replace('CHANNEL', channel[0]?.name ?? '')
    .split(' ');
};

test('lists only routes that exist in the API', () => {
  const ids = routes.map(({ id }) => id);
  expect([...Object.keys(unusual), ...notHere].filter((id) => !ids.includes(id))).toEqual([]);
});

describe('every command line calls its route', () => {
  test.each(Object.entries(typed))('requests %s when running muster %s', async (id, line) => {
    const words = wordsOf(id, line);
    if (id === 'challenge' || id === 'verify') server.forgetSessions();
    if (id === 'renew') {
      await musterHere(['login'], env);
      await age(env);
    }
    server.seen.length = 0;
    const ran = await musterHere(words, env);
    expect(
      server.seen.map(({ route }) => route.id),
      ran.stderr + ran.stdout,
    ).toContain(id);
    if (!(id in answers)) expect(ran.stderr).not.toContain('unexpected error (a bug)');
  });
});

/** Hostile text that agents, module authors, and other untrusted sources could put into a text field. */
const evil = 'Z\u001b[2J\u009b31m\u202e\u2028\u2029\u200b\u0007\u007f\rY\nFORGED';
const acts = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
/** Reports whether commands look up objects by this field. Such fields keep their values. */
const isName = (key: string): boolean => /^(name|username|id|.*_ids?|key|token|url|ws_url|expires_at)$/.test(key);

/** Returns a route's example, with hostile text in every field that accepts it. */
function hostileAnswer(route: Route, names: boolean): unknown {
  const status = Object.keys(route.answers).find((each) => each.startsWith('2')) ?? '';
  const schema = (route.answers as Record<string, { safeParse?(value: unknown): { success: boolean } } | null>)[status];
  const answer = structuredClone(route.example.answer);
  const accepted = (): boolean => schema?.safeParse?.(answer).success === true;
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const fields = value as Record<string, unknown>;
    for (const key of Object.keys(fields)) {
      const field = fields[key];
      if (typeof field !== 'string') visit(field);
      else if (names || !isName(key)) {
        fields[key] = field + evil;
        if (!accepted()) fields[key] = field;
      }
    }
    if (Array.isArray(value)) return;
    fields[`x${evil}`] = evil;
    if (!accepted()) delete fields[`x${evil}`];
  };
  visit(answer);
  return answer;
}

describe('hostile text is escaped', () => {
  const hostile: Record<string, (seen: Seen) => Answer | undefined> = {};
  let evilServer: Standing;
  beforeAll(async () => {
    evilServer = await standIn({ answers: hostile });
  });
  afterAll(() => evilServer.close());

  const lines = Object.entries(typed).filter(([id]) => !['challenge', 'verify', 'renew', 'followEvents'].includes(id));
  const expectVisible = (ran: Ran, shown: string) => {
    const found = (ran.stdout + ran.stderr).match(new RegExp(`.{0,60}${acts.source}.{0,20}`, 'm'));
    expect(found && JSON.stringify(found[0]), shown).toBeNull();
  };
  const expectOwnLines = (ran: Ran, shown: string) => expect(ran.stdout + ran.stderr, shown).not.toMatch(/^FORGED/m);
  const own = () => ({ ...env, MUSTER_URL: evilServer.url });

  test.each(lines)('escapes hostile text in the responses of %s (muster %s)', async (id, line) => {
    // In a pipe, `modules show` prints a module unchanged, and script output keeps its line feeds.
    const verbatim = line.startsWith('modules show');
    const manyLines = verbatim || line.startsWith('operations output');
    for (const names of [false, true]) {
      for (const route of routes)
        if (!['challenge', 'verify', 'renew'].includes(route.id) && route.media === undefined)
          hostile[route.id] = (seen) => answers[route.id]?.(seen) ?? { body: hostileAnswer(route, names) };
      const ran = await musterHere(wordsOf(id, line), own());
      if (!verbatim) expectVisible(ran, `${line}, names: ${names}`);
      if (!manyLines) expectOwnLines(ran, `${line}, names: ${names}`);
    }
  });

  test.each(lines)('escapes hostile text in the errors of %s (muster %s)', async (id, line) => {
    for (const key of Object.keys(hostile)) delete hostile[key];
    hostile[id] = () => ({
      code: 'invalid_input',
      detail: evil,
      errors: [{ path: `/x${evil}`, message: evil }],
    });
    const ran = await musterHere(wordsOf(id, line), own());
    expectVisible(ran, line);
    expectOwnLines(ran, line);
  });
});
