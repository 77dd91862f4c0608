import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../test/certificate.ts';
import { agent, operation, variety } from '../test/examples.ts';
import { type Answer, type Seen, type Standing, standIn } from '../test/orchestrator.ts';
import { makeHome, musterHere } from '../test/process.ts';
import { exits } from './exit.ts';

// Tests the exit code and standard error for each cause of failure.

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let env: Record<string, string>;
const answers: Record<string, (seen: Seen) => Answer | undefined> = {};

beforeAll(async () => {
  const certificate = await makeCertificate();
  server = await standIn({
    tls: certificate,
    tokenLife: 1,
    answers: new Proxy({}, { get: (_, id: string) => answers[id] }),
  });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  await musterHere(['operator', 'init'], env);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});

interface Cause {
  args: string[];
  exit: number;
  code: string | null;
  env?: Record<string, string>;
  answers?: Record<string, (seen: Seen) => Answer | undefined>;
}

const none = (code: 'agent_not_found' | 'module_not_found') => () => ({ code, detail: 'it is not there' });
const refused: Answer = { code: 'operator_unknown', detail: 'this key may not sign in' };

const causes: Record<string, Cause> = {
  success: { args: ['agents', 'list'], exit: exits.done, code: null },
  'an unknown agent': {
    args: ['modules', 'show', 'nothing'],
    answers: { getModule: none('module_not_found') },
    exit: exits.failed,
    code: 'module_not_found',
  },
  'an unknown verb': { args: ['agents', 'lst'], exit: exits.usage, code: 'usage' },
  'an unknown noun': { args: ['agnets'], exit: exits.usage, code: 'usage' },
  'help of an unknown noun': { args: ['help', 'agnets'], exit: exits.usage, code: 'usage' },
  'a bare noun whose subcommand needs an argument': { args: ['state'], exit: exits.usage, code: 'usage' },
  'a tag that no agent has': { args: ['tags', 'list', 'rol'], exit: exits.failed, code: 'tag_not_found' },
  'an unknown flag': { args: ['agents', 'list', '--frobnicate'], exit: exits.usage, code: 'usage' },
  'a missing argument': { args: ['agents', 'show'], exit: exits.usage, code: 'usage' },
  'a word that is not one of the choices': {
    args: ['agents', 'list', '--status', 'well'],
    exit: exits.usage,
    code: 'usage',
  },
  'an invalid address': { args: ['status', '--url', 'ftp://x'], exit: exits.usage, code: 'usage' },
  'a variable that is not a boolean': {
    args: ['status'],
    env: { MUSTER_QUIET: 'perhaps' },
    exit: exits.usage,
    code: 'usage',
  },
  'changes that are pending': {
    args: ['plan', 'web-1', '--exit-code'],
    answers: { planAgent: () => ({ body: operation(variety) }) },
    exit: exits.pending,
    code: null,
  },
  'no key': { args: ['agents', 'list', '--key-file', '/nonexistent/key'], exit: exits.signIn, code: 'key_missing' },
  'an unknown key': {
    args: ['login'],
    answers: { challenge: () => refused },
    exit: exits.signIn,
    code: 'operator_unknown',
  },
  'an expired sign-in session that cannot be renewed': {
    args: ['agents', 'list'],
    answers: { challenge: () => refused },
    exit: exits.signIn,
    code: 'operator_unknown',
  },
  'a refused connection': {
    args: ['status', '--url', 'https://127.0.0.1:1'],
    exit: exits.unreachable,
    code: 'unreachable',
  },
  'another certificate': {
    args: ['status', '--fingerprint', 'ab'.repeat(32)],
    exit: exits.unreachable,
    code: 'certificate_changed',
  },
  'an unknown certificate without a terminal': {
    args: ['status'],
    env: { MUSTER_FINGERPRINT: '' },
    exit: exits.unreachable,
    code: 'certificate_unknown',
  },
  'an orchestrator that is stopping': {
    args: ['agents', 'list'],
    answers: { listAgents: () => ({ code: 'draining', detail: 'it is stopping' }) },
    exit: exits.unreachable,
    code: 'draining',
  },
  'another server at the address': {
    args: ['modules', 'list'],
    answers: { listModules: () => ({ text: '<html>' }) },
    exit: exits.unreachable,
    code: 'unexpected_answer',
  },
  'a failure for one of several agents': {
    args: ['agents', 'reject', 'web-1', 'web-2', '--yes'],
    answers: {
      listAgents: () => ({ body: [agent({}), agent({ name: 'web-2', node_id: 'ab'.repeat(16) })] }),
      getAgent: none('agent_not_found'),
      setAgentStatus: ({ params }) =>
        params.node_id === 'ab'.repeat(16) ? { code: 'storage_unavailable', detail: 'no disk' } : undefined,
    },
    exit: exits.partly,
    code: null,
  },
};

describe.each(Object.entries(causes))('%s', (_, cause) => {
  test('exits with the documented code, and prints the error as JSON with --json', async () => {
    Object.assign(answers, cause.answers);
    try {
      const typed = { ...env, ...cause.env };
      expect((await musterHere(cause.args, typed)).exit).toBe(cause.exit);
      const ran = await musterHere([...cause.args, '--json'], typed);
      expect(ran.exit, ran.stderr).toBe(cause.exit);
      if (cause.code === null) return;
      expect(ran.stdout).toBe('');
      const said = JSON.parse(ran.stderr.trimEnd().split('\n').at(-1) as string);
      expect(said).toMatchObject({ error: { code: cause.code }, exit: cause.exit });
    } finally {
      for (const id of Object.keys(cause.answers ?? {})) delete answers[id];
    }
  });
});

test.each([
  [['agents', 'lst'], "unknown command 'lst'", 'Did you mean `muster agents list`?'],
  [['agnets'], "unknown command 'agnets'", 'Did you mean `muster agents`?'],
  [['audit', 'retention', 'st'], "unknown command 'st'", 'Did you mean `muster audit retention set`?'],
  [['agents', 'web-1'], "unknown command 'web-1'", 'Did you mean `muster agents show web-1`?'],
  [
    ['runs', 'zzzzzzzz', '01K'],
    "unknown command 'zzzzzzzz'",
    'Run `muster runs --help`. Its commands: list, show, follow, cancel, retry.',
  ],
  [['enrol', '--help'], "unknown command 'enrol'", 'Did you mean `muster agents enroll`?'],
  [['zzzzzzzz', '--help'], "unknown command 'zzzzzzzz'", 'Run `muster --help`.'],
  [
    ['runs', 'zzzzzzzz', '--help'],
    "unknown command 'zzzzzzzz'",
    'Run `muster runs --help`. Its commands: list, show, follow, cancel, retry.',
  ],
  [['apply'], 'no agent was named', 'Specify one or more agents, or select them: --selector role=web'],
  [['agents', 'plan', 'web-1'], "unknown command 'plan'", 'Did you mean `muster plan`?'],
  [['upload', 'x.yml'], "unknown command 'upload'", 'Did you mean `muster modules upload`?'],
  [['plan', '--exitcode'], "unknown option '--exitcode'", 'Did you mean --exit-code?'],
  [['metrics', 'show'], "missing required argument 'agent'", 'Run `muster metrics show --help`.'],
])('prints one error and one hint for muster %j', async (args, message, hint) => {
  expect(await musterHere(args, env)).toEqual({ exit: 2, stdout: '', stderr: `error: ${message}\nhint: ${hint}\n` });
  const { stderr } = await musterHere([...args, '--json'], env);
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'usage', message, remedy: hint } });
});

test.each([
  'agents --status pending --help',
  'agents -l role=web --help',
  'runs --status failed --help',
  'metrics web --help',
  'agents web-1 -h',
])('prints help for muster %s', async (line) => {
  const [noun = '', ...rest] = line.split(' ');
  const { exit, stdout, stderr } = await musterHere([noun, ...rest], env);
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
  expect(stdout).toContain(`Usage: muster ${noun} `);
});

test('tests a cause for every exit code', () => {
  expect(new Set(Object.values(causes).map(({ exit }) => exit))).toEqual(new Set(Object.values(exits)));
});

/** Starts the real program, with standard output opened as a shell would open it. */
function start(args: string[], stdout: 'pipe' | number | 'ignore') {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./main.ts', import.meta.url)), ...args], {
    env,
    stdio: ['ignore', stdout, 'pipe'],
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
  const ended = new Promise<{ exit: number | null; signal: NodeJS.Signals | null; stderr: string }>((resolve) =>
    child.on('close', (exit, signal) => resolve({ exit, signal, stderr })),
  );
  return { child, ended };
}

test('terminates by SIGINT after Ctrl-C, which a shell reports as exit code 130', async () => {
  const called = new Promise<undefined>((resolve) => {
    answers.discover = () => void resolve(undefined);
  });
  const { child, ended } = start(['discover', '--wait', '1h'], 'ignore');
  await Promise.race([called, ended]);
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ exit: null, signal: 'SIGINT' });
});

test('reports a full disk as a failure', async () => {
  const full = openSync('/dev/full', 'w');
  try {
    expect(await start(['agents', 'list', '--json'], full).ended).toEqual({
      exit: exits.failed,
      signal: null,
      stderr: 'error: cannot write to standard output: no space left\n',
    });
  } finally {
    closeSync(full);
  }
});
