import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { blocksOf } from '../tools/docs/markdown.ts';
import { Program } from '../tools/suite/program.ts';
import { eventually } from './eventually.ts';
import { Stage, test } from './harness.ts';
import { missing } from './requirements.ts';
import { copyRepository, plainPath } from './working-copy.ts';

const freePorts = ['--api-port', '0', '--agent-port', '0'];

/**
 * A copy of the repository without packages; the start installs only those that it needs. Each run of these tests shows that
 * `npm ci` installs all of them: `npm test` installs with the same lines.
 */
function bareClone(stage: Stage): string {
  const folder = stage.folder('clone');
  copyRepository(folder, false);
  const path = join(folder, 'package.json');
  const { workspaces, devDependencies, overrides: _, ...wanted } = JSON.parse(readFileSync(path, 'utf8'));
  const needed = {
    ...wanted,
    workspaces: workspaces.filter((name: string) => !['e2e', 'bench'].includes(name)),
    devDependencies: { esbuild: devDependencies.esbuild },
  };
  writeFileSync(path, JSON.stringify(needed));
  return folder;
}

/** Simulates a user with a shell in a clone. */
function newcomer(stage: Stage, folder: string) {
  const env = stage.environment({
    PATH: plainPath(),
    npm_config_cache: npmCache(),
    npm_config_update_notifier: 'false',
  });
  const start = (args: string[]) => {
    const command = ['start', '--', ...args];
    return stage.watch(new Program({ name: 'npm start', command: 'npm', args: command, cwd: folder, env }));
  };
  const shell = (line: string) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: folder, env, encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };
  return { start, shell };
}

// The packages of a fresh clone may come from what this machine has fetched before.
const npmCache = () => spawnSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).stdout.trim();

/** All it printed, once it says that it runs. */
const running = (program: Program, timeoutMs = 180_000) =>
  eventually(
    'npm start has come up',
    async () => {
      if (program.ending) throw new Error('it has ended');
      const text = program.lastLines(100).join('\n');
      return text.includes('Ctrl-C stops') ? text : null;
    },
    timeoutMs,
  );

const nameIn = (text: string) => /agent +(\S+): this machine, approved/.exec(text)?.[1] as string;

/** Ids of processes whose command line contains all of these texts. */
function pidsOf(...texts: string[]): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return texts.every((text) => line.includes(text));
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** As a terminal does: to everything in the foreground. */
const pressCtrlC = (program: Program) => process.kill(-program.pid, 'SIGINT');

/** Runs in a clone without the startup second of `npx muster`. */
const direct = 'node_modules/.bin/muster';

describe('npm start', () => {
  const ofAll = new Stage();
  let copied = false;
  /** A clone with the packages of this one. Tests use it one after the other, and each begins without data. */
  const installedClone = () => {
    const folder = ofAll.folder('clone');
    if (!copied) copyRepository(folder, true);
    copied = true;
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    return folder;
  };
  afterAll(() => ofAll.end());

  test('the commands of the README start Muster, apply a module, and remove everything again', async ({
    stage,
    skip,
  }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    try {
      rmSync('/tmp/muster-example', { recursive: true, force: true });
    } catch {
      skip('needs /tmp/muster-example, where the examples go, and another user has one');
    }
    const folder = installedClone();
    const { start, shell } = newcomer(stage, folder);
    const first = start(freePorts);
    const said = await running(first);
    const name = nameIn(said);
    // The console is there, and was built when the tests began.
    expect(said).not.toContain('Building the console');
    const url = /console +(https:\S+)\/,/.exec(said)?.[1] as string;
    const opened = shell(`${direct} web-login --json`);
    expect(JSON.parse(opened.said)).toMatchObject({ url: expect.stringContaining(`${url}/login#code=`) });

    const readme = readFileSync(join(folder, 'README.md'), 'utf8').split('## The first five minutes')[1] as string;
    const lines = blocksOf(readme)
      .filter(({ language }) => language === 'sh')
      .flatMap(({ source }) => source.split('\n'))
      .filter((line) => line !== '' && !line.startsWith('git clone') && !line.startsWith('npm start'))
      // There is no terminal here on which the question could be answered.
      .map((line) => line.replaceAll('web-1', name).replace('muster apply', 'muster apply --yes'));
    const answers: { line: string; said: string }[] = [];
    for (const [nth, line] of lines.entries()) {
      const done = shell(nth === 0 ? line : line.replace('npx muster', direct));
      expect(done, line).toMatchObject({ status: line.startsWith('ls ') ? 2 : 0 });
      answers.push({ line, said: done.said });
    }
    const answer = (part: string, nth = 0) => answers.filter(({ line }) => line.includes(part))[nth]?.said;
    expect(answer('agents list')).toContain(name);
    expect(answer('muster plan')).toContain('/tmp/muster-example/motd');
    expect(answer('cat ')).toContain(`Welcome to ${name},`);
    expect(answer('muster plan', 1)).not.toContain('Welcome');
    expect(answer('muster drift')).toContain('kilroy was here');
    expect(existsSync('/tmp/muster-example')).toBe(false);

    // Terminals are off until the file says otherwise, and then on without a restart.
    const config = join(folder, 'data', 'agent.yml');
    expect(statSync(config).mode & 0o777).toBe(0o600);
    const asked = shell(`echo 'exit 42' | ${direct} terminal open ${name}`);
    expect(asked).toMatchObject({ status: 1, said: expect.stringContaining('remote_terminal.enabled: true') });
    writeFileSync(config, readFileSync(config, 'utf8').replace(/^# (?=remote_terminal:| {2}enabled:)/gm, ''));
    await eventually('terminals are on', async () =>
      shell(`echo 'exit 42' | ${direct} terminal open ${name}`).status === 42 ? true : null,
    );

    pressCtrlC(first);
    expect(await first.ended).toEqual({ code: 0, signal: null });
    expect(first.lastLines(3).join('\n')).toContain('Stopped.');

    // A second start takes up where the first left off: same agent, same key, same modules.
    const second = start(freePorts);
    const text = await running(second);
    expect(nameIn(text)).toBe(name);
    expect(text).not.toContain('new key');
    expect(JSON.parse(shell(`${direct} modules list --json`).said)).toMatchObject([{ name: 'motd' }]);
    const agents = JSON.parse(shell(`${direct} agents list --json`).said);
    expect(agents).toMatchObject([{ name, status: 'approved', connected: true }]);

    // A supervisor's way to stop it.
    second.kill('SIGTERM');
    await second.ended;
    await eventually('nothing is left of it', async () => (pidsOf(folder, '--data-dir').length === 0 ? true : null));
  });

  test('stops both programs when one dies, and shows its last log lines', async ({ stage, skip }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    const folder = installedClone();
    const { start } = newcomer(stage, folder);
    const program = start(freePorts);
    await running(program);
    const [pid] = pidsOf('orchestrator.cjs', folder);
    process.kill(pid as number, 'SIGKILL');
    expect((await program.ended).code).toBe(1);
    const said = program.lastLines(100).join('\n');
    expect(said).toContain(
      'The orchestrator was killed (SIGKILL). Start again with npm start; nothing that was answered is lost.',
    );
    expect(said).not.toContain('{"');
    expect(pidsOf(folder, '--data-dir')).toEqual([]);
  });

  test('exits with a one-line error for invalid arguments', async ({ stage, skip }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    const { start } = newcomer(stage, installedClone());
    for (const [args, code, says] of [
      [['--api-prot', '1'], 2, 'did you mean "api-port"?'],
      [['foo'], 2, 'foo'],
      [['--data-dir', 'README.md'], 1, 'is not a folder'],
      [['--data-dir', '/proc/x'], 1, 'The data directory /proc/x cannot be made'],
    ] as const) {
      const program = start([...args, ...(code === 1 ? freePorts : [])]);
      expect((await program.ended).code, args.join(' ')).toBe(code);
      const said = program.lastLines(100).filter((line) => line !== '' && !line.startsWith('>'));
      expect(said).toEqual([expect.stringContaining(says)]);
    }
  });

  test('names a port that is in use, and how to choose another one', async ({ stage, skip }) => {
    const reason = missing('linux', 'git');
    if (reason) skip(reason);
    const folder = installedClone();
    const { start } = newcomer(stage, folder);
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const program = start(['--api-port', String(port), '--agent-port', '0']);
    expect((await program.ended).code).toBe(1);
    server.close();
    expect(program.lastLines(100).join('\n')).toMatch(
      new RegExp(`Port ${port} is in use.*npm start -- --api-port ${port + 10}`),
    );
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  test('installs missing packages of a fresh clone once', async ({ stage, skip }) => {
    const reason = missing('linux', 'git', 'registry');
    if (reason) skip(reason);
    const { start } = newcomer(stage, bareClone(stage));
    const first = start(freePorts);
    const said = await running(first, 240_000);
    expect(said).toMatch(/Installing packages .* done in \d+ s\./);
    expect(said).toContain('Building the console');
    expect(said).not.toContain('warning:');
    pressCtrlC(first);
    expect((await first.ended).code).toBe(0);
    const second = start(freePorts);
    expect(await running(second)).not.toMatch(/Installing|Building/);
    pressCtrlC(second);
    expect((await second.ended).code).toBe(0);
  });
});
