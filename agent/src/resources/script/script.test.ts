import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { directory, file, operation, script } from '../../converge/test/desired.ts';
import { useAgent } from '../../converge/test/harness.ts';

const h = useAgent();

describe.each(['sh', 'bash'] as const)('a script of %s', (program) => {
  test('hides the text of a script from programs that the script starts', async () => {
    const apply = '#!/bin/sh\nsh -c "ls -l /proc/self/fd; cat <&3"; exit 0';
    const outcome = await h.agent.run(operation('apply', [script('s', { program, apply })]));
    const output = outcome.outputs[0];
    expect(output?.stdout).toMatch(/ 0 -> \/dev\/null/);
    expect(output?.stdout).not.toMatch(/ 3 -> .*deleted/);
    expect(output?.stderr).toMatch(/3.*[Bb]ad file descriptor/);
    expect(`${output?.stdout}${output?.stderr}`).not.toContain('#!/bin/sh');
  });

  test('reports the line number of an error in a script, without a file path', async () => {
    const outcome = await h.agent.run(operation('apply', [script('s', { program, apply: 'true\nno-such-program' })]));
    expect(outcome.results[0]?.message).toMatch(/exit code 127: (line )?2: no-such-program: .*not found$/);
    expect(outcome.outputs[0]?.stderr).not.toContain('/proc');
  });
});

const apply = (...resources: ReturnType<typeof script>[]) => h.agent.run(operation('apply', resources));
const plan = (...resources: ReturnType<typeof script>[]) => h.agent.run(operation('plan', resources));

describe('how a script runs', () => {
  test('runs as the declared user, with the groups and home of that user, and the declared directory and umask', async () => {
    const open = `${h.root}/open`;
    mkdirSync(open);
    for (const path of [dirname(h.root), h.root, open]) chmodSync(path, 0o777);
    const body = {
      apply: 'id -un; id -gn; echo "$HOME $GREETING"; pwd; umask; touch made; stat -c %a:%U made',
      user: 'nobody',
      group: 'daemon',
      working_directory: open,
      environment: { GREETING: 'hello' },
      umask: '0027',
    };
    const outcome = await apply(script('s', body));
    expect(outcome.outputs[0]?.stdout.split('\n').slice(0, 6)).toEqual([
      'nobody',
      'daemon',
      '/nonexistent hello',
      open,
      '0027',
      '640:nobody',
    ]);
  });

  test('never runs programs of its user as root because of PATH or LD_PRELOAD', async () => {
    const bin = `${h.root}/bin`;
    mkdirSync(bin);
    const evil = `#!/bin/sh\necho "evil $(/usr/bin/id -u)"\n`;
    for (const name of ['sh', 'setpriv', 'umask']) writeFileSync(`${bin}/${name}`, evil, { mode: 0o755 });
    for (const path of [dirname(h.root), h.root, bin]) chmodSync(path, 0o755);
    const environment = { PATH: `${bin}:/usr/bin:/bin`, LD_PRELOAD: `${bin}/none.so` };
    const outcome = await apply(
      script('s', { program: '/bin/bash', apply: 'echo "$PATH"; sh', user: 'nobody', environment }),
    );
    expect(outcome.outputs[0]?.stdout).toBe(`${environment.PATH}\nevil 65534\n`);
  });

  test('runs a text with the interpreter at an absolute path', async () => {
    const outcome = await apply(script('s', { program: '/usr/bin/perl', apply: 'print "2+3=", 2+3, "\\n";' }));
    expect(outcome.outputs[0]?.stdout).toBe('2+3=5\n');
  });

  test("hides the text of another user's script from programs that the script starts", async () => {
    const outcome = await apply(script('s', { apply: '# hidden\nsh -c "cat <&3"; exit 0', user: 'nobody' }));
    expect(outcome.outputs[0]?.stderr).toMatch(/3.*[Bb]ad file descriptor/);
    expect(outcome.outputs[0]?.stdout).not.toContain('hidden');
  });

  test('fails with the reason if the working directory is missing', async () => {
    const outcome = await apply(script('s', { apply: 'true', working_directory: `${h.root}/missing` }));
    expect(outcome.results[0]?.message).toMatch(/cd: .*missing/);
  });

  test('stops a script after its own timeout', async () => {
    const outcome = await apply(script('s', { apply: 'sleep 30', timeout: 1 }));
    expect(outcome.results[0]?.message).toBe('its `apply` was stopped because it took longer than 1 s');
  });

  test('refuses an interpreter and a user that the machine does not have', async () => {
    const missing = script('s', { program: '/opt/no/such', apply: 'true', user: 'no-such-user' });
    const message = '/opt/no/such is not installed on this machine; there is no user no-such-user on this machine';
    expect((await plan(missing)).results[0]).toMatchObject({ status: 'failed', message });
    expect((await apply(missing)).results[0]).toMatchObject({ status: 'failed', message });
  });

  test('runs a script that has no check again if its environment changes', async () => {
    const trigger = file(`${h.root}/trigger`, { content: 'x' });
    const again = (environment: Record<string, string>) =>
      apply(trigger, script('s', { apply: 'true', environment }, { rerun_on: [trigger.key] }));
    await again({ A: '1' });
    expect((await again({ A: '1' })).results[1]?.action).toBe('none');
    expect((await again({ A: '2' })).results[1]?.action).toBe('run');
  });
});

describe('a script with `creates`', () => {
  test('runs only while the path of `creates` does not exist, and reports drift if the path disappears', async () => {
    const made = `${h.root}/made`;
    const once = script('s', { apply: `echo x >> ${made}`, creates: made });
    expect((await plan(once)).results[0]).toMatchObject({
      action: 'run',
      changes: [{ field: 'creates', from: 'missing', to: made }],
    });
    expect((await apply(once)).results[0]?.status).toBe('changed');
    expect((await apply(once)).results[0]?.status).toBe('unchanged');
    expect(readFileSync(made, 'utf8')).toBe('x\n');
    rmSync(made);
    expect((await h.agent.run(operation('drift', [once]))).results[0]?.action).toBe('run');
  });

  test('plans no execution if an earlier resource creates the path, and one execution if an earlier resource removes the path', async () => {
    const path = `${h.root}/target`;
    const needs = (...keys: string[]) => script('s', { apply: 'true', creates: path }, { depends_on: keys });
    const created = directory(path);
    expect((await plan(created, needs(created.key))).results[1]?.action).toBe('none');
    await apply(created);
    const removed = directory(path, { ensure: 'absent' });
    expect((await plan(removed, needs(removed.key))).results[1]?.action).toBe('run');
    await apply(removed, needs(removed.key));
    expect(existsSync(path)).toBe(false);
  });
});
