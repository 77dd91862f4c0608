import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { reportsSchema } from '@muster/protocol/wire';
import { describe, expect, test, vi } from 'vitest';
import { defaultLimits } from './converge-engine.ts';
import { startAgent } from './test/agent.ts';
import { directory, file, operation, script, sourced } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const h = useAgent();
const byId = (results: { id: string | null }[], id: string) => results.find((result) => result.id === id);
const entries = () => [...h.agent.engine.spool.pending(0)];

describe('reports', () => {
  test('reports a small operation without changes in one entry: accepted, results, finished', async () => {
    const desired = [file(`${h.root}/f`, { content: 'x' }), directory(`${h.root}/d`)];
    await h.agent.run(operation('apply', desired));
    h.agent.engine.spool.acknowledge(h.agent.engine.spool.lastSeq());
    await h.agent.run(operation('apply', desired));
    expect(entries().map(({ reports }) => reports.map(({ type }) => type))).toEqual([
      ['accepted', 'results', 'finished'],
    ]);
  });

  test('reports a large operation in several valid entries of limited size', async () => {
    const desired = Array.from({ length: 300 }, (_, i) => file(`${h.root}/f${i}`, { content: `content ${i}\n` }));
    const outcome = await h.agent.run(operation('apply', desired));
    expect(outcome.results.length).toBe(300);
    for (const { reports, bytes } of entries()) {
      expect(reportsSchema.safeParse(reports).error).toBeUndefined();
      expect(bytes).toBe(Buffer.byteLength(JSON.stringify(reports)));
      expect(bytes).toBeLessThan(4096 + 512);
    }
    const seqs = entries().map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, i) => i + 1));
  });

  test('reports a long operation as accepted before it finishes', async () => {
    const waits = `until test -e ${h.root}/go; do sleep 0.02; done`;
    const slow = operation('apply', [file(`${h.root}/f`), script('slow', { apply: waits })]);
    const ended = h.agent.run(slow);
    await expect.poll(() => entries()[0]?.reports[0]?.type).toBe('accepted');
    expect(h.agent.engine.busy()).toBe(true);
    expect(h.agent.engine.openOperations()).toEqual([{ operation_id: slow.operation_id, state: 'running' }]);
    writeFileSync(`${h.root}/go`, '');
    await ended;
  });

  test('keeps reports in the spool until they are acknowledged, even across a restart', async () => {
    const outcome = operation('apply', [file(`${h.root}/f`)]);
    await h.agent.run(outcome);
    const before = entries();
    await h.restart();
    expect(entries()).toEqual(before);
    expect(h.agent.engine.openOperations()).toEqual([{ operation_id: outcome.operation_id, state: 'finished' }]);
    h.agent.engine.spool.acknowledge(before.at(-1)!.seq);
    expect(entries()).toEqual([]);
    expect(h.agent.engine.openOperations()).toEqual([]);
    await h.restart();
    expect(entries()).toEqual([]);
    await h.agent.run(operation('plan'));
    expect(entries()[0]?.seq).toBe(before.at(-1)!.seq + 1);
  });

  test('renumbers reports if the orchestrator acknowledges more reports than the agent has sent', async () => {
    await h.agent.run(operation('apply', [file(`${h.root}/f`)]));
    const outcome = entries();
    h.agent.engine.spool.acknowledge(100);
    await expect.poll(() => entries().map(({ seq }) => seq)).toEqual(outcome.map((_, i) => 101 + i));
    expect(entries().map(({ reports }) => reports)).toEqual(outcome.map(({ reports }) => reports));
  });

  test('drops the oldest output, but no results, if the spool exceeds its size limit', async () => {
    await h.restart({ spoolBytes: 23_000 });
    for (const name of ['a', 'b', 'c'])
      await h.agent.run(
        operation('apply', [script(name, { apply: `head -c 9000 /dev/zero | tr '\\0' ${name}` })], {
          keep_modules: ['site'],
        }),
      );
    const outputs = entries().flatMap(({ reports }) => reports.filter(({ type }) => type === 'output'));
    expect(outputs.map((report) => (report.type === 'output' ? report.stdout[0] : ''))).toEqual(['b', 'c']);
    expect(entries().flatMap(({ reports }) => reports.filter(({ type }) => type === 'finished')).length).toBe(3);
  });
});

describe('operations', () => {
  test('runs an operation only once if it is delivered twice, even after it has finished', async () => {
    const once = operation('apply', [script('count', { apply: `echo x >> ${h.root}/count` })]);
    await h.agent.run(once);
    expect(await h.agent.engine.accept(once)).toBe('known');
    await h.restart();
    expect(await h.agent.engine.accept(once)).toBe('known');
    h.agent.engine.spool.acknowledge(h.agent.engine.spool.lastSeq());
    expect(await h.agent.engine.accept(once)).toBe('known');
    expect(entries().map(({ reports }) => reports)).toMatchObject([[{ type: 'finished', status: 'succeeded' }]]);
    expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
  });

  test('runs operations one at a time, in order of arrival', async () => {
    const all = ['a', 'b', 'c'].map((name) =>
      operation(
        'apply',
        [script(name, { apply: `echo ${name} >> ${h.root}/order; sleep 0.05; echo ${name} >> ${h.root}/order` })],
        { keep_modules: ['site'] },
      ),
    );
    await Promise.all(all.map((one) => h.agent.run(one)));
    expect(readFileSync(`${h.root}/order`, 'utf8')).toBe('a\na\nb\nb\nc\nc\n');
  });

  test('limits open operations to 64, and refuses the next one', async () => {
    for (let i = 0; i < 64; i++) expect(await h.agent.engine.accept(operation('plan'))).toBe('accepted');
    expect(await h.agent.engine.accept(operation('plan'))).toBe('full');
  });

  test('skips the remaining resources of a canceled operation, and manages those already applied', async () => {
    const long = operation('apply', [
      file(`${h.root}/f`, {}, { id: 'f' }),
      script('cancels', { apply: `touch ${h.root}/runs; while ! test -e ${h.root}/go; do sleep 0.02; done` }),
      file(`${h.root}/late`, {}, { id: 'late' }),
    ]);
    const ended = h.agent.run(long);
    await expect.poll(() => existsSync(`${h.root}/runs`)).toBe(true);
    h.agent.engine.cancel(long.operation_id);
    writeFileSync(`${h.root}/go`, '');
    const outcome = await ended;
    expect(outcome.finished).toMatchObject({ status: 'cancelled', summary: { total: 3, changed: 2, skipped: 1 } });
    expect(existsSync(`${h.root}/late`)).toBe(false);
    await h.agent.run(operation('apply', []));
    expect(existsSync(`${h.root}/f`)).toBe(false);
  });

  test('stops a waiting operation immediately when it is canceled', async () => {
    const first = operation('apply', [script('first', { apply: `while ! test -e ${h.root}/go; do sleep 0.02; done` })]);
    const second = operation('apply', [file(`${h.root}/f`)]);
    await h.agent.engine.accept(first);
    await h.agent.engine.accept(second);
    h.agent.engine.cancel(second.operation_id);
    expect((await h.agent.ended(second.operation_id)).finished).toMatchObject({ status: 'cancelled' });
    writeFileSync(`${h.root}/go`, '');
    expect((await h.agent.ended(first.operation_id)).finished.status).toBe('succeeded');
    expect(existsSync(`${h.root}/f`)).toBe(false);
  });

  test('closes operations whose outcome the orchestrator has stored', async () => {
    const outcome = operation('apply', [file(`${h.root}/f`)]);
    await h.agent.run(outcome);
    h.agent.engine.settle([outcome.operation_id, 'unknown']);
    expect(h.agent.engine.openOperations()).toEqual([]);
  });

  test('resumes operations at the next start after a stop', async () => {
    const long = operation('apply', [
      script('waits', { apply: `touch ${h.root}/runs; sleep 0.3; echo x >> ${h.root}/count` }),
      file(`${h.root}/late`),
    ]);
    await h.agent.engine.accept(long);
    await expect.poll(() => existsSync(`${h.root}/runs`)).toBe(true);
    await h.restart();
    const outcome = await h.agent.ended(long.operation_id);
    expect(outcome.finished).toMatchObject({ status: 'succeeded', summary: { total: 2, changed: 2 } });
    expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
    expect(statSync(`${h.root}/late`).isFile()).toBe(true);
  });

  test('removes unused content after an apply, even if it compacts the journal', async () => {
    await h.agent.run(operation('apply', [sourced(`${h.root}/f`, 'content')]));
    const contents = `${h.agent.dataDir}/state/contents`;
    await expect.poll(() => readdirSync(contents).length).toBe(1);
    // Records of more than 4 MiB make the journal due for compaction.
    await h.agent.run(operation('apply', [file(`${h.root}/g`, { content: 'x'.repeat(5 * 1024 * 1024) })]));
    await expect.poll(() => readdirSync(contents)).toEqual([]);
  });

  test('refuses a data directory that other users can enter', async () => {
    await h.agent.stop();
    chmodSync(h.dataDir, 0o750);
    await expect(startAgent(h.dataDir)).rejects.toThrow(/chmod 700/);
    chmodSync(h.dataDir, 0o700);
    h.agent = await startAgent(h.dataDir);
  });
});

describe('failures and triggers', () => {
  test('fails a resource of an unknown kind, skips its dependents, and applies the others', async () => {
    const service: ResolvedResource = {
      ...file('/x'),
      key: 'package-brew:nginx',
      type: 'package-brew',
      identity: 'nginx',
      id: 'svc',
      body: { name: 'nginx' },
    };
    const desired = [
      service,
      file(`${h.root}/a`, {}, { id: 'a', depends_on: [service.key] }),
      file(`${h.root}/b`, {}, { id: 'b', depends_on: [`path:${h.root}/a`] }),
      file(`${h.root}/c`, {}, { id: 'c' }),
    ];
    const planned = await h.agent.run(operation('plan', desired));
    const outcome = await h.agent.run(operation('apply', desired));
    expect(outcome.results.map(({ status }) => status)).toEqual(['failed', 'skipped', 'skipped', 'changed']);
    expect(planned.results.map(({ status }) => status)).toEqual(['failed', 'skipped', 'skipped', 'would_change']);
    expect(byId(outcome.results, 'svc')).toMatchObject({
      message: expect.stringContaining('cannot apply package-brew'),
    });
    expect(byId(outcome.results, 'b')).toMatchObject({ message: 'skipped, because `a` was skipped' });
    expect(outcome.finished).toMatchObject({ status: 'failed', summary: { failed: 1, skipped: 2, changed: 1 } });
    expect(outcome.finished.error).toContain('svc');
  });

  test('runs a triggered script exactly once, even if its check passes', async () => {
    const desired = (content: string) => [
      file(`${h.root}/a`, { content }, { id: 'a' }),
      file(`${h.root}/b`, { content }, { id: 'b' }),
      script(
        's',
        { apply: `echo x >> ${h.root}/count`, check: 'true' },
        { rerun_on: [`path:${h.root}/a`, `path:${h.root}/b`] },
      ),
    ];
    await h.agent.run(operation('apply', desired('1')));
    const outcome = await h.agent.run(operation('apply', desired('2')));
    expect(byId(outcome.results, 's')).toMatchObject({
      action: 'run',
      status: 'changed',
      triggered_by: ['a', 'b'],
      corrective: false,
    });
    const again = await h.agent.run(operation('apply', desired('2')));
    expect(byId(again.results, 's')).toMatchObject({ action: 'none', status: 'unchanged' });
    expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\nx\n');
  });

  test('fires a trigger in the next operation if its resource was not reached', async () => {
    const desired = (content: string) => [
      file(`${h.root}/a`, { content }, { id: 'a' }),
      script('gate', { apply: `test -e ${h.root}/open` }),
      script(
        's',
        { apply: `echo x >> ${h.root}/count`, check: 'true' },
        { rerun_on: [`path:${h.root}/a`], depends_on: ['script:gate'] },
      ),
    ];
    const failed = await h.agent.run(operation('apply', desired('1')));
    expect(byId(failed.results, 's')).toMatchObject({ status: 'skipped' });
    writeFileSync(`${h.root}/open`, '');
    await h.restart();
    const planned = await h.agent.run(operation('plan', desired('1')));
    expect(byId(planned.results, 's')).toMatchObject({ action: 'run', triggered_by: ['a'] });
    const outcome = await h.agent.run(operation('apply', desired('1')));
    expect(byId(outcome.results, 's')).toMatchObject({ action: 'run', triggered_by: ['a'] });
    expect(byId((await h.agent.run(operation('apply', desired('1')))).results, 's')).toMatchObject({ action: 'none' });
    expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
  });

  test('runs a script without `check` in every apply unless it has `rerun_on`, and reports no drift', async () => {
    writeFileSync(`${h.root}/a`, '');
    const desired = () => [
      file(`${h.root}/a`, {}, { id: 'a' }),
      script(
        'once',
        { apply: `echo x >> ${h.root}/once; test -e ${h.root}/ready` },
        { rerun_on: [`path:${h.root}/a`] },
      ),
      script('always', { apply: `echo x >> ${h.root}/always` }),
    ];
    await h.agent.run(operation('apply', desired()));
    writeFileSync(`${h.root}/ready`, '');
    await h.agent.run(operation('apply', desired()));
    await h.agent.run(operation('apply', desired()));
    expect(readFileSync(`${h.root}/once`, 'utf8')).toBe('x\nx\n');
    expect(readFileSync(`${h.root}/always`, 'utf8')).toBe('x\nx\nx\n');
    expect((await h.agent.run(operation('drift'))).finished.summary).toMatchObject({ total: 3, unchanged: 3 });
  });
});

describe('drift', () => {
  test('fails a drift check if there was no apply, or if it refers to another apply', async () => {
    expect((await h.agent.run(operation('drift'))).finished).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('apply again'),
    });
    const applied = operation('apply', [file(`${h.root}/f`)]);
    await h.agent.run(applied);
    const other = operation('drift', [], { snapshot_operation_id: '01OTHER0000000000000000000' });
    expect((await h.agent.run(other)).finished).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(applied.operation_id),
    });
    const same = operation('drift', [], { snapshot_operation_id: applied.operation_id });
    expect((await h.agent.run(same)).finished).toMatchObject({ status: 'succeeded' });
  });

  test('measures drift against the last successful apply, including a changed type', async () => {
    await h.agent.run(
      operation('apply', [file(`${h.root}/f`, { content: 'a' }), file(`${h.root}/g`, { content: 'a' })]),
    );
    await h.agent.run(
      operation('apply', [file(`${h.root}/f`, { content: 'b' }), script('fails', { apply: 'exit 1' })], {
        keep_modules: ['site'],
      }),
    );
    const outcome = await h.agent.run(operation('drift'));
    expect(outcome.results).toMatchObject([
      { identity: `${h.root}/f`, changes: [{ field: 'content' }], status: 'would_change' },
    ]);
    await h.agent.run(operation('apply', [file(`${h.root}/f`, { content: 'a' })]));
    rmSync(`${h.root}/f`);
    mkdirSync(`${h.root}/f`);
    expect((await h.agent.run(operation('drift'))).results).toMatchObject([
      { changes: [{ field: 'type', from: 'directory', to: 'file' }] },
    ]);
  });

  test('includes the resources of kept modules in a drift check', async () => {
    await h.agent.run(operation('apply', [file(`${h.root}/f`, { content: 'a' }, { module: 'kept' })]));
    await h.agent.run(operation('apply', [file(`${h.root}/g`)], { keep_modules: ['kept'] }));
    expect(readFileSync(`${h.root}/f`, 'utf8')).toBe('a');
    writeFileSync(`${h.root}/f`, 'moved');
    expect((await h.agent.run(operation('drift'))).results.map(({ identity }) => identity)).toEqual([`${h.root}/f`]);
  });
});

describe('a secret', () => {
  test('redacts the whole value of a field that contains a secret', async () => {
    const secret = 'hunter2';
    const desired = [
      file(
        `${h.root}/f`,
        { content: `password=${secret}\n`, mode: '0600' },
        { sensitive_fields: ['content'], id: 'f' },
      ),
      script(
        's',
        { apply: `echo ${secret}; echo ${secret} >&2; exit 3`, check: `echo ${secret}; false` },
        { sensitive_fields: ['apply'] },
      ),
    ];
    await h.agent.run(operation('plan', desired));
    const outcome = await h.agent.run(operation('apply', desired));
    await h.agent.run(operation('drift'));
    expect(readFileSync(`${h.root}/f`, 'utf8')).toContain(secret);
    expect(JSON.stringify(entries())).not.toContain(secret);
    expect(byId(outcome.results, 'f')).toMatchObject({
      sensitive: true,
      diff: null,
      changes: [
        { field: 'ensure' },
        { field: 'content', from: null, to: '(sensitive)' },
        { field: 'mode', to: '0600' },
      ],
    });
    expect(outcome.outputs).toMatchObject([{ stdout: '(sensitive)', stderr: '(sensitive)', exit_code: 3 }]);
  });
});

describe('misbehaving scripts', () => {
  const limits = { ...defaultLimits, scriptMs: 300, checkMs: 200, outputBytes: 1000 };

  test('stops a hanging script and every process that it started', async () => {
    await h.restart({ limits });
    const outcome = await h.agent.run(
      operation('apply', [
        script('hangs', { apply: `sleep 60 & echo $! > ${h.root}/child; wait` }),
        script('check-hangs', { check: 'sleep 60', apply: 'true' }),
        file(`${h.root}/f`),
      ]),
    );
    expect(outcome.results.map(({ status }) => status)).toEqual(['failed', 'failed', 'changed']);
    expect(byId(outcome.results, 'hangs')).toMatchObject({ message: expect.stringContaining('longer than 0.3 s') });
    const child = readFileSync(`${h.root}/child`, 'utf8').trim();
    await expect
      .poll(() => !existsSync(`/proc/${child}`) || readFileSync(`/proc/${child}/stat`, 'latin1').includes(') Z '))
      .toBe(true);
  });

  test('reads all output of a script, and truncates it in the report', async () => {
    await h.restart({ limits: { ...limits, scriptMs: 20_000 } });
    const outcome = await h.agent.run(
      operation('apply', [script('loud', { apply: 'echo first; head -c 50000000 /dev/zero; echo last; exit 7' })]),
    );
    expect(outcome.outputs).toMatchObject([{ exit_code: 7, truncated: true }]);
    const { stdout } = outcome.outputs[0]!;
    expect(stdout.length).toBeLessThan(1100);
    expect(stdout).toMatch(/^first\n/);
    expect(stdout).toMatch(/bytes cut/);
    expect(stdout).toMatch(/last\n$/);
  });

  test('runs scripts with a clean environment and empty input, and hides their text from other users', async () => {
    vi.stubEnv('MUSTER_LEAK', 'leaked');
    // The service and the launcher set this variable for the agent; scripts must not inherit it.
    vi.stubEnv('MALLOC_ARENA_MAX', '1');
    const outcome = await h.agent.run(
      operation('apply', [script('env', { apply: 'env; cat; tr "\\0" " " < /proc/$$/cmdline # secret-comment' })]),
    );
    vi.unstubAllEnvs();
    const { stdout } = outcome.outputs[0]!;
    expect(stdout).toContain('PATH=/usr/local/sbin');
    expect(stdout).not.toMatch(/MUSTER_LEAK|MALLOC/);
    expect(stdout).not.toContain('secret-comment');
  });

  test('runs a script whose text is longer than any command line', async () => {
    const outcome = await h.agent.run(
      operation('apply', [script('long', { apply: `# ${'x'.repeat(300_000)}\necho ran` })]),
    );
    expect(outcome.outputs).toMatchObject([{ stdout: 'ran\n' }]);
  });
});
