import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { agentExample, listAgents, nodeExample } from '@muster/protocol/http';
import { AgentFleet } from './load/agent-fleet.ts';
import type { LoadOptions, LoadSeen } from './load/api-load.ts';
import { seedAgents } from './load/seed-agents.ts';
import { conclude, type Measured } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median, quantile } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import type { ServerOptions } from './servers/api-server.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import { serverFlags, usageOf } from './servers/server-process.ts';

/**
 * Measures authenticated reads of one agent's record over the API, compared with a bare server that returns the same bytes
 * with the same framework. The servers and the client are separate processes. The client measures the servers in turn, so
 * that other load on the machine affects both.
 *
 * Also measures lists of 10,000 agents in pages of 500, compared with a server that returns the same bytes; and tag
 * writes, which wait for the disk, compared with a server that receives the same number of bytes and stores nothing.
 *
 *     node bench/src/api.ts [--layer] [--seconds 5] [--rounds 3] [--connections 32] [--json]
 *     node bench/src/api.ts --url https://127.0.0.1:4748 --agent NAME --tokens TOKEN[,TOKEN…] --pid PID --rate 900
 *
 * The first form starts an orchestrator with connected agents, and uses TLS for both servers; `--layer` measures only
 * the HTTP layer, with the record in memory. The second form measures a running orchestrator; `--rate` keeps the client
 * below its sessions' rate limit.
 *
 * A round begins when all connections are open and have received a response, so that no figure includes TLS handshakes. All
 * servers have the same V8 heap limits.
 *
 * A request costs the client as much CPU time as the server, so the client may be the bottleneck. The bench therefore
 * judges requests per second of the server's CPU time.
 */
const options = benchOptions({
  numbers: { seconds: [5, 0.2], rounds: [3, 1], connections: [32, 4], agents: [10_000, 10] },
  texts: { url: null, agent: nodeExample, tokens: 'bench-token', pid: null, rate: null },
  flags: ['layer'],
});
let tokens = options.tokens.split(',');
let path = `/api/v1/agents/${encodeURIComponent(options.agent)}`;
/**
 * Number of sign-in sessions that the client opens; the sign-in rate limit allows this many without a pause. Each
 * session may send 1,000 requests a second. The client sends bursts, so the server may receive two seconds' worth of
 * requests within one second.
 */
const sessions = 14;
const rateOfSession = 690;
const start = (program: string, execArgv: string[] = []): ChildProcess =>
  fork(join(import.meta.dirname, program), [], { execArgv });

type Figures = Measured<'api'>['figures'];

interface Server {
  url: string;
  pid: number;
}
interface Seen extends LoadSeen {
  /** Number of requests per second of the server's CPU time. */
  perCpuSecond: number;
  p50Ms: number;
}

async function serve(options: ServerOptions): Promise<Server> {
  const child = start('servers/api-server.ts', serverFlags);
  child.send(options);
  const [port] = (await once(child, 'message')) as [number];
  return { url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}${path}`, pid: child.pid! };
}

async function load(server: Server, seconds: number, wishes: LoadOptions['wishes'] = []): Promise<Seen> {
  const child = start('load/api-load.ts');
  let { cpuSecs } = usageOf(server.pid);
  child.send({
    url: server.url,
    wishes,
    tokens,
    connections: options.connections,
    seconds,
    rate: options.rate ? Number(options.rate) : options.url || options.layer ? null : sessions * rateOfSession,
  } satisfies LoadOptions);
  const seen = await new Promise<LoadSeen>((resolve, reject) => {
    child.on('message', (message: LoadSeen | 'open') => {
      if (message === 'open') ({ cpuSecs } = usageOf(server.pid));
      else resolve(message);
    });
    child.once('disconnect', () => reject(new Error('the client exited before it sent its figures')));
  });
  const { latencies } = seen;
  const perCpuSecond = latencies.length / (usageOf(server.pid).cpuSecs - cpuSecs);
  return { ...seen, perCpuSecond, p50Ms: median(latencies) };
}

/** Minimum number of latencies for a 99th percentile, so that 20 of them exceed it. */
const minLatencies = 2000;
/** Returns the 99th percentile of the latencies in all rounds together, because a single round may have too few. */
const p99Of = (rounds: readonly Seen[]): number =>
  quantile(
    rounds.flatMap(({ latencies }) => latencies),
    0.99,
  );

/** Formats the failures of all rounds, such as `50 × status 429`. Empty if no request failed. */
function describeFailures(rounds: readonly Seen[]): string {
  const counts = new Map<string, number>();
  for (const { failures } of rounds)
    for (const [cause, count] of Object.entries(failures)) counts.set(cause, (counts.get(cause) ?? 0) + count);
  return [...counts].map(([cause, count]) => `${count} × ${cause}`).join(', ');
}

async function bytesOf(url: string): Promise<string> {
  const send = url.startsWith('https:') ? httpsRequest : httpRequest;
  // Accepts the orchestrator's self-signed certificate.
  const request = send(url, { headers: { authorization: `Bearer ${tokens[0]}` }, rejectUnauthorized: false });
  request.end();
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const bytes = await text(answer);
  if (answer.statusCode !== 200) throw new Error(`GET ${url} returned ${answer.statusCode}: ${bytes}`);
  return bytes;
}

/** Starts an orchestrator with seeded agents, two of which are connected. */
async function realOrchestrator(): Promise<{ server: Server; stop: () => Promise<void> }> {
  const orchestrator = await OrchestratorProcess.start({
    prepare: (dataDir) => seedAgents(dataDir, options.agents),
  });
  const fleet = new AgentFleet(2);
  const stop = async () => {
    await fleet.stop();
    await orchestrator.stop();
  };
  try {
    await fleet.enroll(orchestrator, 2);
    const [agent] = await orchestrator.call(listAgents, { query: { filter: 'bench=yes' } });
    tokens = await orchestrator.sessions(sessions);
    path = `/api/v1/agents/${agent!.node_id}`;
    return { server: { url: orchestrator.url + path, pid: orchestrator.pid }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function measure(): Promise<Figures> {
  const real = options.url || options.layer ? null : await realOrchestrator();
  try {
    return await measureAgainst(real?.server ?? null);
  } finally {
    await real?.stop();
  }
}

async function measureAgainst(real: Server | null): Promise<Figures> {
  const tls = real !== null || (options.url?.startsWith('https:') ?? false);
  if (options.url && !options.pid) throw new Error('--url requires --pid, the process ID of that orchestrator');
  const muster = options.url
    ? { url: options.url.replace(/\/$/, '') + path, pid: Number(options.pid) }
    : (real ?? (await serve({ kind: 'muster', bytes: '', token: tokens[0]!, tls })));
  const bytes = await bytesOf(muster.url);
  if (options.layer && bytes !== JSON.stringify(agentExample))
    throw new Error('the HTTP layer did not return the record');
  const pages: Record<string, string> = {};
  if (real !== null)
    for (const page of pagesOf(options.agents)) pages[page] = await bytesOf(new URL(page, real.url).href);
  const bare = await serve({ kind: 'bare', bytes, pages, token: '', tls });

  const seen = { bare: [] as Seen[], muster: [] as Seen[] };
  const figures = ['perCpuSecond', 'requestsPerSecond', 'p50Ms'] as const;
  for (const server of [bare, muster]) await load(server, Math.min(2, options.seconds));
  for (let round = 0; round < options.rounds; round++) {
    seen.bare.push(await load(bare, options.seconds));
    seen.muster.push(await load(muster, options.seconds));
    printProgress(`reads of a record, round ${round + 1} of ${options.rounds}`);
  }
  const typical = (name: keyof typeof seen, figure: (typeof figures)[number]) =>
    median(seen[name].map((one) => one[figure]));

  console.log(
    `${bytes.length} bytes, ${options.connections} connections, ${options.rounds} rounds of ${options.seconds} s`,
  );
  console.log(
    table(
      ['server', 'requests/CPU s', 'requests/s', 'p50 ms', 'p99 ms', 'failed'],
      (['bare', 'muster'] as const).map((name) => [
        name,
        ...figures.map((figure) => typical(name, figure)),
        p99Of(seen[name]),
        describeFailures(seen[name]) || 'none',
      ]),
    ),
  );
  const ratios = seen.muster.map((one, round) => one.perCpuSecond / seen.bare[round]!.perCpuSecond);
  console.log(`ratio of each round: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`);
  console.log(
    ratioLine(
      'requests per second',
      typical('muster', 'requestsPerSecond'),
      typical('bare', 'requestsPerSecond'),
      'requests/s',
    ),
  );
  console.log(ratioLine('p99', p99Of(seen.muster), p99Of(seen.bare), 'ms'));

  const failures = describeFailures(seen.muster);
  const record =
    failures === ''
      ? median(ratios)
      : notJudged(`requests failed: ${failures}; for 429, set --rate below the rate limit of the sessions`);
  if (real === null) {
    const omitted = notJudged('omitted by --layer and --url');
    return { record, page: omitted, tag: omitted };
  }
  const lists = Object.keys(pages).map((path) => ({ method: 'GET' as const, path }));
  const page = await measureWishes(`reads of a page of ${pageSize} agents`, bare, muster, lists, 'p99');
  const tags = Array.from({ length: 20 }, (_, n) => ({
    method: 'PUT' as const,
    path: `${path}/tags/bench-${n}`,
    body: JSON.stringify({ value: `v${n}` }),
  }));
  return { record, page, tag: await measureWishes('writes of a tag', bare, muster, tags, 'perCpuSecond') };
}

const pageSize = 500;
const pagesOf = (agents: number): string[] =>
  Array.from(
    { length: Math.ceil(agents / pageSize) },
    (_, at) => `/api/v1/agents?limit=${pageSize}&offset=${at * pageSize}`,
  );

/** Measures requests to both servers in turn. @returns the ratio for the judged figure */
async function measureWishes(
  what: string,
  bare: Server,
  muster: Server,
  wishes: LoadOptions['wishes'],
  judged: 'p99' | 'perCpuSecond',
): Promise<Figure> {
  const seen = { bare: [] as Seen[], muster: [] as Seen[] };
  for (const server of [bare, muster]) await load(server, Math.min(2, options.seconds), wishes);
  for (let round = 0; round < options.rounds; round++) {
    seen.bare.push(await load(bare, options.seconds, wishes));
    seen.muster.push(await load(muster, options.seconds, wishes));
    printProgress(`${what}, round ${round + 1} of ${options.rounds}`);
  }
  const typical = (name: keyof typeof seen, figure: 'requestsPerSecond' | 'perCpuSecond' | 'p50Ms') =>
    median(seen[name].map((one) => one[figure]));
  const failures = describeFailures([...seen.muster, ...seen.bare]);
  console.log(`\n${what}${failures === '' ? '' : `: requests failed: ${failures}`}`);
  for (const [name, figure, unit] of [
    ['requests per second', 'requestsPerSecond', 'requests/s'],
    ['requests per CPU second', 'perCpuSecond', 'requests/CPU s'],
    ['p50', 'p50Ms', 'ms'],
  ] as const)
    console.log(ratioLine(name, typical('muster', figure), typical('bare', figure), unit));
  console.log(ratioLine('p99', p99Of(seen.muster), p99Of(seen.bare), 'ms'));
  if (failures !== '') return notJudged(`requests failed: ${failures}`);
  if (judged !== 'p99') return median(seen.muster.map((one, round) => one[judged] / seen.bare[round]![judged]));
  const count = Math.min(...Object.values(seen).map((rounds) => rounds.flatMap(({ latencies }) => latencies).length));
  if (count < minLatencies) return notJudged(`${count} latencies are too few for a p99; set --seconds or --rounds`);
  return p99Of(seen.muster) / p99Of(seen.bare);
}

const sizes = `${options.agents} agents, ${options.connections} connections, ${options.rounds} rounds of ${options.seconds} s`;
process.exit(conclude('api', { sizes, figures: await measure() }));
