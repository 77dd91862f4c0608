import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listRuns, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { muster } from '../tools/suite/cli.ts';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { operatorEnvironment, Person } from './person.ts';

/** Returns a module with a script that runs on each apply and exits once the file `gate` exists. */
const gated = (name: string, gate: string) => `name: ${name}
supports: [{ platform: linux }]
resources:
  - id: wait
    resource:
      script:
        program: sh
        check: test -e ${gate}.never
        apply: "until [ -e ${gate} ]; do sleep 0.05; done"
`;

const uneven = `name: uneven
supports: [{ platform: linux }]
resources:
  - id: first
    resource:
      script:
        program: sh
        check: test -e /proc/none
        apply: "echo looking; echo no room here >&2; test \${{ attr.hostname }} = web-1"
`;

test('the CLI plans several agents together, applies the plans as one run, detaches, cancels, and reports partial failure', async ({
  stage,
  onTestFinished,
}) => {
  const orchestrator = await stage.orchestrator();
  const tags = { role: 'web' };
  await Promise.all(
    ['web-1', 'web-2'].map((name) => stage.agent(orchestrator, name, { tags, flags: ['--hostname', name] })),
  );
  const gates = stage.folder('gates');
  for (const [name, content] of [
    ['uneven', uneven],
    ['one', gated('one', join(gates, 'one'))],
    [
      'two',
      `${gated('two', join(gates, 'two'))}  - id: slow
    resource: { script: { program: sh, check: "test -e /proc/none", apply: sleep 5 } }
  - resource: { directory-unix: { path: ${gates}/after } }
`,
    ],
  ] as const)
    await orchestrator.call(uploadModule, { body: { name, content } });
  const env = operatorEnvironment(stage, orchestrator);
  const run = (...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile(muster, args, { env: stage.environment(env) }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });

  const [planned, wrongSelector, wrongName] = await Promise.all([
    run('plan', '-l', 'role=web', '-m', 'uneven', '--exit-code'),
    run('plan', '-l', 'role=web site in paris'),
    run('plan', 'wbe-1', 'web-2', '-m', 'uneven'),
  ]);
  expect(planned, planned.stderr).toMatchObject({ code: 3 });
  expect(planned.stdout.match(/^Plan for 2 agents: web-1, web-2 with uneven$/gm)).toHaveLength(1);
  expect(wrongSelector.code).toBe(2);
  expect(wrongSelector.stderr).toMatch(/\n {2}role=web site in paris\n {19}\^\n/);
  expect(wrongName.code).toBe(1);
  expect(wrongName.stderr).toContain('Did you mean web-1');

  const partly = await run('apply', '-l', 'role=web', '-m', 'uneven', '--yes');
  expect(partly.code, partly.stderr).toBe(6);
  expect(partly.stdout).toMatch(/^! web-2 failed/m);
  expect(partly.stdout).toMatch(/^web-2\n {2}script .*\n {4}no room here$/m);
  expect(partly.stdout).toContain('1 succeeded, 1 failed');

  const atTerminal = (line: string): Person => {
    // Without a trap for SIGINT, Ctrl-C would also terminate the shell.
    const person = new Person(stage, `trap : INT; stty -g; ${line}; echo "code=$?"; stty -g; echo done`, env);
    onTestFinished(() => person.kill());
    return person;
  };
  const expectRestored = (person: Person) => {
    const [before, after] = person.shown.match(/^[0-9a-f]+(:[0-9a-f]+)+/gm) ?? [];
    expect(after).toBe(before);
    // The last escape sequence for the cursor makes it visible.
    expect(person.shown.lastIndexOf('\u001b[?25h')).toBeGreaterThanOrEqual(person.shown.lastIndexOf('\u001b[?25l'));
  };

  const leaver = atTerminal(`${muster} apply web-1 web-2 -m one`);
  await leaver.sees('Apply this on 2 agents?');
  leaver.type('y');
  await leaver.sees('2 running');
  leaver.type('\u0003');
  await leaver.sees('What do you want to do?');
  await leaver.sees('Keep watching');
  leaver.type('\u001b[B\u001b[B\r');
  await leaver.sees('2 running');
  leaver.type('\u0003');
  await leaver.sees('Keep watching');
  leaver.type('\r');
  await leaver.sees('To cancel it: muster runs cancel');
  await leaver.sees('code=130');
  await leaver.sees('done');
  expectRestored(leaver);
  const newest = async () => (await orchestrator.call(listRuns, { query: { limit: '1' } }))[0];
  expect(await newest()).toMatchObject({ status: 'running', kind: 'apply', assignment: null });
  writeFileSync(join(gates, 'one'), '');
  await eventually('the detached run has succeeded', async () => (await newest())?.status === 'succeeded' || null);

  const canceller = atTerminal(`${muster} apply web-1 web-2 -m two`);
  await canceller.sees('Apply this on 2 agents?');
  canceller.type('y');
  await canceller.sees('2 running');
  canceller.type('\u0003');
  await canceller.sees('Keep watching');
  canceller.type('\u001b[B\r');
  await canceller.sees('Canceling');
  // An agent that receives the cancellation after this line runs the sleeping script and skips the directory.
  writeFileSync(join(gates, 'two'), '');
  await canceller.sees('2 canceled');
  await canceller.sees('code=1');
  await canceller.sees('done');
  expectRestored(canceller);
  expect(await newest()).toMatchObject({ status: 'cancelled' });
});
