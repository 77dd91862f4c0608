import { EventEmitter } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiPrefix, routes } from '@muster/protocol/http';
import { composeFileFault, composeReferences, parseModule, resolveDesiredSet } from '@muster/protocol/module';
import { matchesSelector, parseSelector } from '@muster/protocol/selector';
import {
  agentMessageSchema,
  decodeTerminalFrame,
  encodeAnnouncement,
  encodeTerminalFrame,
  limits,
  readAnnouncement,
  reportsSchema,
} from '@muster/protocol/wire';
import { ConfigError, parseConfig } from '../../../agent/src/config.ts';
import { Session } from '../../../agent/src/connection/session.ts';
import { servicesOf } from '../../../agent/src/host/containers/compose-program.ts';
import { HostFailure } from '../../../agent/src/host/failure.ts';
import { matching } from '../../../agent/src/host/files/bounded-match.ts';
import { lifetimeOf, namesOf, readChain } from '../../../agent/src/resources/certificate/chain.ts';
import { problemWords } from '../../../agent/src/resources/certificate-acme/authority.ts';
import { parseRequirement, parseRequirements } from '../../../agent/src/resources/package-pip/requirements-file.ts';
import {
  decode as decodeStructured,
  parse as parseStructured,
  withSetting,
} from '../../../agent/src/resources/structured-edit/edit.ts';
import { json as jsonSyntax } from '../../../agent/src/resources/structured-edit/json.ts';
import type { Syntax } from '../../../agent/src/resources/structured-edit/syntax.ts';
import { toml as tomlSyntax } from '../../../agent/src/resources/structured-edit/toml.ts';
import { locate } from '../../../agent/src/resources/structured-edit/value.ts';
import { yaml as yamlSyntax } from '../../../agent/src/resources/structured-edit/yaml.ts';
import { MemoryEngine } from '../../../agent/test/memory-engine.ts';
import { decode, encode, hintsIn, type Message } from '../../../orchestrator/src/bus/messages.ts';
import { everyone, maxSealedBytes, Seal } from '../../../orchestrator/src/bus/sealing.ts';
import { defaultGatewayLimits } from '../../../orchestrator/src/gateway/limits.ts';
import { Link, type LinkOwner } from '../../../orchestrator/src/gateway/link.ts';
import { readReports } from '../../../orchestrator/src/gateway/report-text.ts';
import { addressOf, bearer, testApp } from '../../../orchestrator/test/app-fixture.ts';
import type { Example } from './inputs.ts';
import { defaultCpuMs, type FuzzTarget } from './target.ts';

const root = join(import.meta.dirname, '../../..');
const json = (...values: unknown[]): Example[] => values.map((value) => ({ body: JSON.stringify(value) }));
const hex = (bytes: number) => 'ab'.repeat(bytes);
const operation_id = '01HZX'.padEnd(26, '0');
const stoppedClock = { now: () => 1_800_000_000_000, monotonic: () => 0, after: () => () => {} };

const hello = {
  ...{ type: 'hello', versions: [1, 2, 3, 4], agent_version: '0.1.0', public_key: hex(32), signature: hex(64) },
  ...{ instance_id: hex(16), pin_source: 'flag', hostname: 'web-1', token: 'token', clock_ms: 1_800_000_000_000 },
  key_statement: { former_key: hex(32), made_at: 1_800_000_000, former_until: 1_800_100_000, signature: hex(64) },
  attributes: { platform: 'linux', distro: 'debian', 'net.ip': '192.0.2.1' },
  open_operations: [{ operation_id, state: 'running' }],
};
const sealOfReplica = new Seal(Buffer.alloc(32, 1), hex(16));
const replicaMessages: readonly Message[] = [
  {
    type: 'hints',
    hints: [
      { type: 'operation_ended', operation_id, node_id: hex(16), run_id: null, status: 'succeeded' },
      { type: 'session_ended', token_hash: hex(32), renewed_as: null },
      { type: 'placed', place: 7 },
    ],
  },
  { type: 'numbers', nonce: hex(16), all: 7 },
  { type: 'ask', id: hex(16), topic: 'link/probe', until: 1_800_000_000_000, question: { node_id: hex(16) } },
  { type: 'answer', id: hex(16), answer: { answered: true } },
  { type: 'refusal', id: hex(16), code: 'agent_not_found', detail: 'no such agent' },
];
const result = {
  ...{ module: 'm', id: null, type: 'file-unix', identity: '/a', action: 'update', status: 'changed', diff: 'a\nb\n' },
  ...{ changes: ['mode'], triggered_by: [], corrective: false, message: null, duration_ms: 1, sensitive: false },
};
const reports = [
  { type: 'accepted', operation_id },
  { type: 'results', operation_id, position: 0, results: [result, result] },
  { type: 'output', operation_id, resource: 'm/a', stdout: 'x\n', stderr: '', exit_code: 0, truncated: false },
  {
    ...{ type: 'finished', operation_id, status: 'succeeded', error: null, started_at: 1, finished_at: 2 },
    summary: { total: 2, unchanged: 0, changed: 2, removed: 0, failed: 0, skipped: 0 },
    plan_digest: hex(32),
  },
];
const sample = {
  ...{ collected_at: 1_800_000_000, cpu_usage: 1.5, memory_total: 8, memory_used: 4, swap_used: 0, disk_total: 9 },
  ...{ disk_used: 3, load1: 0.5, net_rx_bytes: 1, net_tx_bytes: 2, processes: 3, uptime: 4 },
};
const agentMessages = [
  { type: 'attributes', attributes: hello.attributes, clock_ms: 1 },
  { type: 'report', seq: 1, reports },
  { type: 'report_part', seq: 2, part: 0, parts: 2, text: JSON.stringify(reports) },
  { type: 'metrics', samples: [sample, sample] },
  {
    ...{ type: 'output_progress', operation_id, resource: 'm/a', stderr: null },
    stdout: { from: 0, to: 2, text: 'ab' },
  },
  { type: 'drift_hint', keys: ['file-unix:/a'] },
  { type: 'terminal_opened', channel: 1, shell: '/bin/sh', user: 'root' },
  { type: 'terminal_refused', channel: 1, code: 'disabled', message: 'no' },
  { type: 'terminal_exited', channel: 1, exit_code: 0, signal: null },
  { type: 'terminal_credit', channel: 1, bytes: 1 },
  { type: 'bye', reason: 'stops', returns: true },
];

/** Creates a gateway link with a socket that discards all data. Its owner rethrows unexpected errors. */
function link(state: 'greeting' | 'open', onMessage: LinkOwner['onMessage'] = () => {}): Link {
  const ws = Object.assign(new EventEmitter(), {
    ...{ bufferedAmount: 0, link: null, send() {}, close() {}, terminate() {}, pause() {}, resume() {}, ping() {} },
  });
  const owner: LinkOwner = {
    ...{ clock: stoppedClock, limits: defaultGatewayLimits, onMessage },
    ...{ onHello() {}, onFrame() {}, onRefused() {}, onClosing() {}, onEnded() {} },
    onFault(_, error) {
      throw error;
    },
  };
  const made = new Link(ws as never, { remoteAddress: '192.0.2.1' } as never, owner);
  made.state = state;
  return made;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const orchestratorMessages = [
  { type: 'challenge', nonce: hex(32), public_key: hex(32), versions: [1, 2, 3, 4] },
  {
    ...{ type: 'welcome', version: 4, status: 'approved', name: 'web-1', tags: { role: 'web' }, node_id: hex(16) },
    ...{ acknowledged: 0, metrics_interval: 60, settled_operations: [operation_id] },
  },
  { type: 'refused', code: 'rejected', message: 'no', retry_after_secs: 600 },
  { type: 'status', status: 'approved', name: null, tags: { role: 'web' } },
  {
    ...{
      type: 'operation',
      operation_id,
      kind: 'apply',
      modules: ['m'],
      keep_modules: [],
      snapshot_operation_id: null,
    },
    resources: [
      {
        ...{ key: 'file-unix:/a', module: 'm', id: null, name: null, type: 'file-unix', identity: '/a' },
        body: { path: '/a', content: 'a', mode: '0644' },
        ...{ depends_on: [], reload_on: [], restart_on: [], rerun_on: [], sensitive_fields: [] },
        only_if: [{ exists: '/b' }, { not: { command: 'true' } }],
      },
    ],
    plan_digest: hex(32),
    verify: [{ type: 'http', module: 'm', sensitive: false, timeout: 5, url: 'http://127.0.0.1/', status: 200 }],
  },
  { type: 'cancel', operation_id },
  { type: 'ack', seq: 1 },
  { type: 'credit', seq: 1, part: 0 },
  { type: 'metrics_stored', collected_at: 1 },
  { type: 'metrics_refused', retry_after_secs: 5 },
  { type: 'output_taken' },
  { type: 'terminal_open', channel: 1, session_id: operation_id, cols: 80, rows: 24, shell: null, operator: 'ann' },
  { type: 'terminal_resize', channel: 1, cols: 80, rows: 24 },
  { type: 'terminal_close', channel: 1, reason: 'left' },
  { type: 'terminal_credit', channel: 1, bytes: 1 },
  { type: 'drain', retry_after_secs: 2 },
];
const welcomed = orchestratorMessages.slice(0, 2).map((message) => Buffer.from(JSON.stringify(message)));

/** Passes an input to an agent's session after the given messages from the orchestrator. */
async function receiveAsAgent(input: Uint8Array, before: readonly Buffer[]): Promise<void> {
  const ws = Object.assign(new EventEmitter(), {
    ...{ bufferedAmount: 0, isPaused: false, send() {}, close() {}, terminate() {}, pause() {}, resume() {} },
  });
  const bugs: unknown[] = [];
  const log = {
    debug() {},
    info() {},
    warn() {},
    error: (fields: object) => 'error' in fields && bugs.push(fields.error),
  };
  new Session({
    dialled: { ws: ws as never, exporter: Buffer.alloc(32), orchestratorKey: Buffer.from(hex(32), 'hex') },
    ...{ engine: new MemoryEngine(), terminals: null, samples: null, clock: stoppedClock, log, random: () => 0 },
    hello: () => ({ type: 'bye', reason: 'in place of a hello' }),
    ...{ welcomed() {}, statusChanged() {} },
  });
  for (const message of before) ws.emit('message', message, false);
  ws.emit('message', Buffer.from(input), false);
  // The session handles messages in a later event-loop turn.
  await new Promise((resolve) => setImmediate(resolve));
  if (bugs.length > 0) throw bugs[0];
}

const app = testApp();
const visible = /[^\x21-\x7e]/g;

/**
 * Sends an HTTP request. The first line of the input contains the method and path, and the second line contains the
 * headers as JSON.
 */
async function request(input: Uint8Array): Promise<void> {
  const bytes = Buffer.from(input);
  const [line = '', headers = '', ...body] = bytes.toString('latin1').split('\n');
  const [method = '', address = ''] = line.split(' ');
  const url = address.replaceAll(visible, '');
  if (!['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(method) || !url.startsWith('/') || url.startsWith('//'))
    return;
  const extra = Object.entries((parsed(headers) ?? {}) as object).filter(
    ([name, value]) => /^[a-z-]+$/.test(name) && typeof value === 'string' && !/[^\x20-\x7e]/.test(value),
  );
  const answer = await app.inject({
    method: method as 'GET',
    url,
    headers: { ...bearer('admin'), ...Object.fromEntries(extra) },
    ...(body.length > 0 ? { payload: Buffer.from(body.join('\n'), 'latin1') } : {}),
  });
  if (answer.statusCode >= 500) throw new Error(`status ${answer.statusCode}: ${answer.body.slice(0, 500)}`);
  if (answer.statusCode >= 400 && typeof (parsed(answer.body) as { code?: unknown } | undefined)?.code !== 'string')
    throw new Error(`status ${answer.statusCode} without an error code: ${answer.body.slice(0, 500)}`);
}

const requests = routes.map((route): Example => {
  const query = new URLSearchParams(route.example.query as Record<string, string> | undefined).toString();
  const headers = JSON.stringify(route.method === 'GET' ? {} : { 'content-type': 'application/json' });
  const head = `${route.method} ${addressOf(route)}${query === '' ? '' : `?${query}`}\n${headers}`;
  return route.method === 'GET' || route.body === undefined
    ? { head, body: '' }
    : { head: `${head}\n`, body: JSON.stringify(route.example.body) };
});
if (requests.some(({ head }) => !head!.includes(` ${apiPrefix}`) && !head!.includes(' /')))
  throw new Error('no address');

const folder = join(root, 'examples');
const modules = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ name }): Example => ({ body: readFileSync(join(folder, name)) }));
const moduleAsJson = json({
  ...{ name: 'm', version: '1.0.0', description: 'd', supports: [{ platform: 'linux', 'tag.role': 'web' }] },
  parameters: [{ name: 'port', type: 'integer', default: 80 }],
  templates: [{ id: 't', content: 'port ${{ param.port }} of ${{ tag.role | default("none") }}' }],
  resources: [
    { id: 'a', when: { platform: 'linux' }, resource: { 'file-unix': { path: '/a', content: 'a', mode: '0644' } } },
    { id: 'b', depends_on: ['a'], resource: { 'line-unix': { path: '/b', line: 'a=b', match: '^a=' } } },
    { variants: [{ when: { 'tag.role': 'web' }, resource: { sysctl: { key: 'a.b', value: '1' } } }] },
    { resource: { 'cron-unix': { name: 'c', user: 'root', command: 'true', schedule: '*/5 * * * *' } } },
  ],
});

function readModule(input: Uint8Array): void {
  const found = parseModule(input);
  if (!found.ok) {
    if (found.faults.length === 0) throw new Error('the module was refused, but no error was reported');
    return;
  }
  const agent = { name: 'web-1', node_id: hex(16), attributes: hello.attributes, tags: { role: 'web' } };
  resolveDesiredSet({ modules: [found.module], agent });
}

const selectors = [
  'role=web env!=test region in (eu,us) tier notin (gold)',
  'canary !legacy attr.distro=debian note="a b"',
];
const announcement = {
  ...{ host: 'muster.example', port: 4747, orchestratorKey: new Uint8Array(32), sentAt: 1_800_000_000 },
  nonce: new Uint8Array(16),
};

/**
 * Matches a pattern against strings. The first line of the input is the pattern, and each additional line is a string.
 */
function match(input: Uint8Array): void {
  const [pattern = '', ...texts] = Buffer.from(input).toString('utf8').split('\n');
  // A module refuses longer patterns, because compile time grows with the square of the pattern length.
  if (pattern.length > 1_000) return;
  try {
    matching(pattern, texts);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
  }
}

/** Edits the first value of a file, in each supported syntax. */
function editStructured(input: Uint8Array): void {
  for (const syntax of [jsonSyntax, yamlSyntax, tomlSyntax] as unknown as Syntax[]) {
    const file = { syntax, path: '/f' };
    try {
      const tree = parseStructured(file, decodeStructured(Buffer.from(input), '/f'));
      for (const pointer of [['a'], ['b', 'c'], ['0', 'd']])
        withSetting(file, tree, pointer, locate(tree.value, pointer, '/f'), 'x');
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
    }
  }
}

/** A PEM certificate that no machine uses. */
const certificate = `-----BEGIN CERTIFICATE-----\n${[
  'MIIBiDCCAS+gAwIBAgIUH14ledVuN2FHABLocnbpSsZ4jLcwCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBYTAeFw0yNjExMjkwMjU5',
  'NDVaFw0zNjExMjYwMjU5NDVaMAwxCjAIBgNVBAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQULcxPbZUZPtfTLGcLNEIR',
  'N4V+ighWQ4H+WsZ+D3TlekNLRcPX1EpQ1uWn4u1Cc8JlUC5k7l6qf96LY+cQrjApo28wbTAdBgNVHQ4EFgQUuBmPkVccsJDQU71s',
  '99zTGkp9LB8wHwYDVR0jBBgwFoAUuBmPkVccsJDQU71s99zTGkp9LB8wDwYDVR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglhLmV4',
  'YW1wbGWHBMAAAgEwCgYIKoZIzj0EAwIDRwAwRAIgQgt/yBhA/HgefS0S3F/pwuknLpT1t7hWpARtWj5RoE0CIBffd+ANeXMcC6TW',
  'aJ4mkIBWj2ctBGrYnUfxykKD6Ygw',
].join('')}\n-----END CERTIFICATE-----\n`;

/** Parses a certificate authority's response: a certificate chain or a problem document. */
function readAuthority(input: Uint8Array): void {
  const text = Buffer.from(input).toString();
  problemWords(parsed(text));
  try {
    const chain = readChain(text);
    lifetimeOf(chain);
    for (const each of chain) namesOf(each);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
  }
}

/** Checks a Compose file, and reads it as the output of Compose. */
function readCompose(input: Uint8Array): void {
  const text = Buffer.from(input).toString();
  composeFileFault(text);
  composeReferences(text);
  try {
    servicesOf(`web ${hex(32)}\n`, text);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
  }
}

/** Parses a requirements file, and checks that pip would read each resulting line as one requirement. */
function readRequirements(input: Uint8Array): void {
  try {
    for (const { line } of parseRequirements(Buffer.from(input).toString(), '/f').requirements) {
      const again = parseRequirement(line);
      if (/[^ -~]|\$/.test(line) || typeof again === 'string' || again.line !== line)
        throw new Error(`pip would not read the line as one requirement: ${JSON.stringify(line)}`);
    }
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
  }
}

const requirements = `# c
--require-hashes
Flask_Cors [Async_IO, more]==1.0.*  # via app
requests (>=2.8.1 , <3);python_version >= "3.8" and (sys_platform=='linux' or extra not in "x")
tool===1!1.0rc1.post2.dev3+a.1 \\
    --hash=sha256:${hex(32)} \\
    --hash sha512:${hex(64)}
six~=1.2
`;

export const targets: Readonly<Record<string, FuzzTarget>> = {
  'compose-files': {
    examples: [
      { body: 'x-a: &a { image: nginx }\nservices:\n  web: { <<: *a, scale: 2 }\n  api: *a\nvolumes: { data: {} }\n' },
      {
        body: 'services:\n  web:\n    image: "nginx:${TAG:-1}"\n    deploy: { replicas: "3" }\n    environment: [A=b]\n',
      },
    ],
    ...{ maxBytes: 64 * 1024, cpuMs: 1_000, allocatedBytes: 512 * 1024 * 1024 },
    run: readCompose,
  },
  'structured-files': {
    examples: [
      { body: '// c\n{"a": 1, "b": {"c": [1, {"d": null}]},\n}\n' },
      { body: 'a: &x 1\nb: {c: [*x]} # c\nl: |\n  t\n---\n' },
      { body: 'a = 1979-05-27\n[b]\nc.d = { e = "x" }\n[[s]]\nf = 1.5\n' },
    ],
    ...{ maxBytes: 64 * 1024, cpuMs: 1_000, allocatedBytes: 512 * 1024 * 1024 },
    run: editStructured,
  },
  'certificate-authority': {
    examples: [
      { body: certificate.repeat(2) },
      ...json({ type: 'urn:ietf:params:acme:error:malformed', detail: 'no', subproblems: [{ detail: 'x' }] }),
      ...json({ type: { toString: 0 } }),
      { body: `{"type":${'['.repeat(50_000)}${']'.repeat(50_000)}}` },
    ],
    ...{ maxBytes: 256 * 1024, cpuMs: defaultCpuMs },
    run: readAuthority,
  },
  'requirements-files': {
    examples: [requirements, requirements.replaceAll('\n', '\r\n'), 'six; "$" in os_name'].map((body) => ({
      body,
    })),
    // The agent parses such a file once for each observation.
    ...{ maxBytes: 2 * 1024 * 1024, cpuMs: 500, cpuMsPerMiB: 400, allocatedBytes: 512 * 1024 * 1024 },
    run: readRequirements,
  },
  hello: {
    ...{ examples: json(hello), maxBytes: limits.agentFrameBytes, cpuMs: defaultCpuMs },
    run(input) {
      link('greeting').receive(Buffer.from(input), false);
      agentMessageSchema.safeParse(parsed(Buffer.from(input).toString()));
    },
  },
  'agent-messages': {
    ...{ examples: json(...agentMessages), maxBytes: limits.agentFrameBytes, cpuMs: defaultCpuMs },
    run(input) {
      link('open', (_, message) => {
        if (message.type === 'report_part') reportsSchema.safeParse(parsed(message.text));
      }).receive(Buffer.from(input), false);
    },
  },
  reports: {
    ...{ examples: json(reports), maxBytes: limits.reportLength, cpuMs: defaultCpuMs, cpuMsPerMiB: 100 },
    run: (input) => void readReports(Buffer.from(input).toString()),
  },
  'orchestrator-messages': {
    // An orchestrator may send desired states of 64 MiB. Each input is parsed twice, once in each state of the session.
    ...{ examples: json(...orchestratorMessages), maxBytes: 1024 * 1024, cpuMs: defaultCpuMs, cpuMsPerMiB: 400 },
    async run(input) {
      await receiveAsAgent(input, []);
      await receiveAsAgent(input, welcomed);
    },
  },
  http: { examples: requests, maxBytes: 1024 * 1024, cpuMs: defaultCpuMs, run: request },
  modules: {
    ...{ examples: [...modules, ...moduleAsJson], maxBytes: 3 * 1024 * 1024, run: readModule },
    // Same bound as in `hostile.test.ts`: about six times the cost of a valid module of the maximum size.
    cpuMs: 500,
    // The largest valid module allocates 155 MiB of short-lived tokens.
    allocatedBytes: 384 * 1024 ** 2,
  },
  selectors: {
    ...{ examples: selectors.map((body) => ({ body })), maxBytes: 64 * 1024, cpuMs: defaultCpuMs },
    run(input) {
      const found = parseSelector(Buffer.from(input).toString());
      if (found.ok) matchesSelector(found.selector, { tags: { role: 'web' }, attributes: hello.attributes });
    },
  },
  'agent-config': {
    examples: [{ body: 'remote_terminal: { enabled: true, shell: /bin/sh }\nmetrics:\n  collection_interval: 30\n' }],
    // Only the machine's owner writes this file, so the bounds are loose.
    ...{ maxBytes: 16 * 1024, cpuMs: 1_000, allocatedBytes: 512 * 1024 ** 2 },
    run(input) {
      try {
        parseConfig(Buffer.from(input).toString());
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
      }
    },
  },
  frames: {
    examples: [{ body: encodeTerminalFrame(7, Buffer.from('ls\n')) }, { body: encodeAnnouncement(announcement) }],
    ...{ maxBytes: 64 * 1024, cpuMs: defaultCpuMs },
    run(input) {
      const frame = decodeTerminalFrame(input);
      if (frame !== null && !Buffer.from(encodeTerminalFrame(frame.channel, frame.bytes)).equals(input))
        throw new Error('encoding the decoded frame yields different bytes');
      readAnnouncement(input);
    },
  },
  'replica-messages': {
    examples: [...replicaMessages.map(encode), sealOfReplica.seal(everyone, encode(replicaMessages[0]!))].map(
      (body) => ({
        body,
      }),
    ),
    ...{ maxBytes: maxSealedBytes, cpuMs: defaultCpuMs, cpuMsPerMiB: 400 },
    run(input) {
      const bytes = Buffer.from(input);
      const message = decode(bytes);
      if (message?.type === 'hints') hintsIn(message.hints);
      sealOfReplica.open(everyone, bytes);
    },
  },
  patterns: {
    examples: [{ body: '^a=.*$\na=b' }, { body: '(x|y)+z\nxyxyz' }, { body: '[a-z]{2,5}\\.conf$\nabc.conf' }],
    maxBytes: 64 * 1024,
    // The code limits a match to 400 ms of CPU time, and retries an attempt that timed out before using that much.
    cpuMs: 1_500,
    run: match,
  },
};
