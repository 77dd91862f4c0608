import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { block, file, line, operation } from '../../converge/test/desired.ts';
import { useAgent } from '../../converge/test/harness.ts';
import { snapshotTree } from '../../converge/test/tree.ts';

/** Tests lines and blocks in files, with complete plans and applies. */

const h = useAgent();
const path = (): string => `${h.root}/f`;
const write = (text: string): void => writeFileSync(path(), text, 'latin1');
const read = (): string => readFileSync(path(), 'latin1');
const apply = async (...resources: ResolvedResource[]) => (await h.agent.run(operation('apply', resources))).results;
const plan = async (...resources: ResolvedResource[]) => (await h.agent.run(operation('plan', resources))).results;
const asRoot = test.runIf(process.geteuid?.() === 0);

describe('several in one file', () => {
  test('plans, adds, and removes several lines and blocks in one operation each', async () => {
    write('127.0.0.1 localhost\nUMASK 022\nlast');
    const before = snapshotTree(h.root);
    const all = [
      file(path(), { mode: '0640' }),
      line(path(), 'UMASK 027', { match: '^UMASK' }),
      block(path(), 'one', { content: '10.0.0.1 one\n' }),
      line(path(), 'appended'),
      block(path(), 'two', { content: '10.0.0.2 two\n' }),
      line(path(), 'x', { match: 'localhost', ensure: 'absent' }),
    ];
    const essence = (results: Awaited<ReturnType<typeof plan>>) =>
      results.map(({ identity, action, changes }) => ({ identity, action, changes }));
    const planned = await plan(...all);
    const applied = await apply(...all);
    expect(essence(applied)).toEqual(essence(planned));
    expect(applied.map(({ status }) => status)).toEqual(Array(6).fill('changed'));
    expect(read()).toBe(
      'UMASK 027\nlast\n# BEGIN muster: one\n10.0.0.1 one\n# END muster: one\nappended\n# BEGIN muster: two\n10.0.0.2 two\n# END muster: two',
    );
    expect((await apply(...all)).map(({ status }) => status)).toEqual(Array(6).fill('unchanged'));
    expect((await apply()).map(({ status }) => status)).toEqual(Array(6).fill('changed'));
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test("keeps others' changes when it removes its lines and blocks", async () => {
    write('a\nb\n');
    await apply(line(path(), 'ours'), block(path(), 'm', { content: 'in\n' }));
    write(`top\n${read()}bottom\n`);
    await apply(block(path(), 'm', { content: 'in\n' }));
    expect(read()).toBe('top\na\nb\n# BEGIN muster: m\nin\n# END muster: m\nbottom\n');
    await apply();
    expect(read()).toBe('top\na\nb\nbottom\n');
  });
});

describe('an added line', () => {
  const text = '[one]\na = 1\n[two]\nb = 2';
  test.each([
    [{ after: '^\\[one\\]' }, '[one]\nnew\na = 1\n[two]\nb = 2'],
    [{ before: '^\\[two\\]' }, '[one]\na = 1\nnew\n[two]\nb = 2'],
    [{ after: '^\\[' }, '[one]\na = 1\n[two]\nnew\nb = 2'],
    [{ before: 'BOF' }, `new\n${text}`],
    [{ after: 'EOF' }, `${text}\nnew`],
    [{ after: '^b' }, `${text}\nnew`],
    [{ after: 'nowhere' }, `${text}\nnew`],
    [{ before: '^\\[two\\]', match: '^a' }, '[one]\nnew\n[two]\nb = 2'],
  ])('adds and removes a line in a file with %j', async (body, expected) => {
    write(text);
    const declared = line(path(), 'new', body);
    const planned = await plan(declared);
    const applied = await apply(declared);
    expect(applied.map(({ changes, action }) => ({ changes, action }))).toEqual(
      planned.map(({ changes, action }) => ({ changes, action })),
    );
    expect(read()).toBe(expected);
    expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
    await apply();
    expect(read()).toBe(text);
  });
});

describe('an added block', () => {
  const text = '[one]\na = 1\n[two]\nb = 2';
  const added = '# BEGIN muster: m\nnew\n# END muster: m\n';
  test.each([
    [{ after: '^\\[one\\]' }, `[one]\n${added}a = 1\n[two]\nb = 2`],
    [{ before: '^\\[two\\]' }, `[one]\na = 1\n${added}[two]\nb = 2`],
    [{ before: 'BOF' }, `${added}${text}`],
    [{ after: 'nowhere' }, `${text}\n${added.trimEnd()}`],
  ])('inserts and removes a block with %j, and keeps its position', async (body, expected) => {
    write(text);
    const declared = block(path(), 'm', { content: 'new\n', ...body });
    expect(await plan(declared)).toMatchObject([{ action: 'create', diff: expect.stringContaining('+new') }]);
    expect(await apply(declared)).toMatchObject([{ status: 'changed' }]);
    expect(read()).toBe(expected);
    expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
    expect(await apply(block(path(), 'm', { content: 'new\n', after: 'EOF' }))).toMatchObject([
      { status: 'unchanged' },
    ]);
    await apply();
    expect(read()).toBe(text);
  });

  test('refuses `before` together with `after`', async () => {
    write(text);
    expect(await plan(block(path(), 'm', { before: 'BOF', after: 'EOF' }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('cannot be combined') },
    ]);
  });
});

describe('captures', () => {
  test('expands captured groups in the line, and restores the original line', async () => {
    write('GRUB_CMDLINE="quiet"\nend\n');
    const declared = line(path(), '\\1"\\g<value> audit=1"\\\\', {
      match: '^(GRUB_CMDLINE=)"(?<value>(?:(?! audit).)*)"$',
      backrefs: true,
    });
    expect(await plan(declared)).toMatchObject([
      { changes: [{ field: 'line', from: 'GRUB_CMDLINE="quiet"', to: 'GRUB_CMDLINE="quiet audit=1"\\' }] },
    ]);
    expect(await apply(declared)).toMatchObject([{ status: 'changed' }]);
    expect(read()).toBe('GRUB_CMDLINE="quiet audit=1"\\\nend\n');
    expect(await apply(declared)).toMatchObject([
      { status: 'unchanged', message: expect.stringContaining('no line matches') },
    ]);
    await apply();
    expect(read()).toBe('GRUB_CMDLINE="quiet"\nend\n');
  });

  test('changes nothing if the line already equals the expanded one', async () => {
    write('port = 80 # web\n');
    const declared = line(path(), 'port = 8080\\g<1>', { match: '^port = \\d+(.*)$', backrefs: true });
    await apply(declared);
    expect(read()).toBe('port = 8080 # web\n');
    expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
    write('port = 81 # by hand\n');
    expect(await apply(declared)).toMatchObject([{ status: 'changed' }]);
    expect(read()).toBe('port = 8080 # by hand\n');
  });

  test.each([
    ['\\1x', '^(.*)$', 'would change it again on each apply'],
    ['\\2', '^(a)$', 'refers to \\2, but `match` has no such group'],
    ['\\g<b>', '^(?<a>a)$', 'no such group'],
  ])('refuses the line %s for the match %s, and changes nothing', async (text, match, reason) => {
    write('a\n');
    expect(await apply(line(path(), text, { match, backrefs: true }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining(reason) },
    ]);
    expect(read()).toBe('a\n');
  });

  test('refuses `backrefs` if the next apply would change another line', async () => {
    write('a=old\nb=old\n');
    const declared = line(path(), '\\1=new', { match: '^(\\w+)=old$', backrefs: true });
    for (const results of [await plan(declared), await apply(declared)])
      expect(results).toMatchObject([
        { status: 'failed', message: expect.stringMatching(/matches 2 lines.*narrower/s) },
      ]);
    expect(read()).toBe('a=old\nb=old\n');
    write('a=new\nb=old\n');
    expect(await apply(declared)).toMatchObject([{ status: 'changed' }]);
    expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
    expect(read()).toBe('a=new\nb=new\n');
  });

  test('replaces the last of several matching lines if the result still matches', async () => {
    write('port = 80\nport = 81\n');
    const declared = line(path(), 'port = 8080\\1', { match: '^port = \\d+(.*)$', backrefs: true });
    await apply(declared);
    expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
    expect(read()).toBe('port = 80\nport = 8080\n');
  });

  test('refuses `backrefs` for a line that is not UTF-8', async () => {
    write('a \xff\n');
    expect(await apply(line(path(), 'b \\1', { match: '^a (.*)$', backrefs: true }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('is not UTF-8') },
    ]);
    expect(read()).toBe('a \xff\n');
  });
});

describe('every match', () => {
  const every = (text: string, match: string, body: Parameters<typeof line>[2] = {}) =>
    line(path(), text, { match, replaces: 'every_line', ...body });

  test('replaces every matching line, and restores all of them', async () => {
    const original = 'root 1\nroot 2\r\nother\nroot 3';
    write(original);
    const declared = every('root none', '^root ');
    expect(await plan(declared)).toMatchObject([
      { changes: [{ field: 'line', from: 'root 1\nroot 2\nroot 3', to: 'root none\nroot none\nroot none' }] },
    ]);
    await apply(declared);
    expect(read()).toBe('root none\nroot none\r\nother\nroot none');
    expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
    await apply();
    expect(read()).toBe(original);
  });

  test('adds the line once if none matches, and removes it again', async () => {
    write('a\n');
    await apply(every('b', '^b'));
    expect(read()).toBe('a\nb\n');
    expect(await apply(every('b', '^b'))).toMatchObject([{ status: 'unchanged' }]);
    await apply();
    expect(read()).toBe('a\n');
  });

  test('replaces every part, and keeps the rest of each line', async () => {
    write('deb http://x http://y # c\nnone\nhttp://z\n');
    const declared = every('https://\\g<host>', 'http://(?<host>\\w)', { replaces: 'every_part', backrefs: true });
    await apply(declared);
    expect(read()).toBe('deb https://x https://y # c\nnone\nhttps://z\n');
    expect(await apply(declared)).toMatchObject([
      { status: 'unchanged', message: expect.stringContaining('no line matches') },
    ]);
    await apply();
    expect(read()).toBe('deb http://x http://y # c\nnone\nhttp://z\n');
  });

  test('takes `\\\\1` literally without `backrefs`', async () => {
    write('a-a\n');
    await apply(every('\\1', 'a', { replaces: 'every_part' }));
    expect(read()).toBe('\\1-\\1\n');
  });

  test.each([
    ['foobar', 'foo', 'every_part'],
    ['y', 'x*', 'every_part'],
    ['\\1x', '^(.*)$', 'every_line'],
  ] as const)('refuses the line %s for the match %s in %s, and changes nothing', async (text, match, replaces) => {
    write('foo\n');
    const declared = every(text, match, { replaces, backrefs: true });
    for (const results of [await plan(declared), await apply(declared)])
      expect(results).toMatchObject([
        { status: 'failed', message: expect.stringContaining('would change it again on each apply') },
      ]);
    expect(read()).toBe('foo\n');
  });

  test('refuses more lines than it can restore', async () => {
    write('a\n'.repeat(257));
    expect(await apply(every('b', '^a'))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('257 lines') },
    ]);
    expect(read()).toBe('a\n'.repeat(257));
  });

  test('refuses more lines than it can restore, even over several applies', async () => {
    write('a\n'.repeat(200));
    await apply(every('b', '^a'));
    const more = `${read()}${'a\n'.repeat(100)}`;
    write(more);
    expect(await apply(every('b', '^a'))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('more than 256 lines') },
    ]);
    expect(read()).toBe(more);
    await apply();
    expect(read()).toBe('a\n'.repeat(300));
  });

  test('refuses to remove more lines than it can restore', async () => {
    write('a\n'.repeat(257));
    expect(await plan(line(path(), 'a', { ensure: 'absent' }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('exceed 256 lines') },
    ]);
  });

  test('counts the replacement text of each line toward the limit', async () => {
    write('a\n'.repeat(200));
    expect(await apply(every('b'.repeat(1000), '^a'))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('exceed 128 KiB') },
    ]);
  });

  test('refuses `every_part` with `ensure: absent`', async () => {
    write('a b\n');
    expect(await apply(every('x', 'b', { replaces: 'every_part', ensure: 'absent' }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('removes whole lines') },
    ]);
    expect(read()).toBe('a b\n');
  });

  test.each([
    ['present', 'root 1\n', 'echo root 9 >> '],
    ['present', 'root 1\n', 'echo other > '],
    ['present', 'other\n', 'echo root 9 > '],
    ['absent', 'root 1\n', 'echo root 9 >> '],
  ] as const)('changes no line that is not recorded (%s, %j, %s)', async (ensure, original, change) => {
    write(original);
    writeFileSync(`${h.root}/g`, '');
    const results = await apply(
      line(`${h.root}/g`, 'x', { validate: `${change} ${path()} # %` }),
      every('root none', '^root ', { ensure }),
    );
    expect(results).toMatchObject([
      { status: 'changed' },
      { status: 'failed', message: expect.stringContaining('was changed during the apply; apply again') },
    ]);
    expect(read()).not.toContain('none');
  });

  test.each(['every_part', 'last_line'] as const)(
    'plans %s for a file that an earlier resource creates',
    async (replaces) => {
      const template = line(path(), 'new', {
        match: 'a',
        replaces,
        ...(replaces === 'last_line' ? { backrefs: true } : {}),
      });
      expect(await plan(file(path(), { content: 'a\n' }), template)).toMatchObject([
        { action: 'create' },
        { action: 'update', changes: [{ field: 'line', from: null, to: 'unknown until the file exists' }] },
      ]);
      expect(await apply(file(path(), { content: 'b\n', if_exists: 'keep' }), template)).toMatchObject([
        { status: 'changed' },
        { status: 'unchanged' },
      ]);
      rmSync(path());
      expect((await h.agent.run(operation('drift'))).results[1]).toMatchObject({
        changes: [{ field: 'type', from: 'absent', to: 'file' }],
      });
    },
  );

  test('restores the first lines after the declared line changed, and after edits by hand', async () => {
    write('p 1\np 2\nq\np 3\n');
    await apply(every('p A', '^p '));
    await apply(every('p B', '^p '));
    expect(read()).toBe('p B\np B\nq\np B\n');
    write('new\np B\np hand\nq\np B\n');
    expect(await plan(every('p B', '^p '))).toMatchObject([{ changes: [{ from: 'p hand', to: 'p B' }] }]);
    await apply(every('p B', '^p '));
    await apply();
    expect(read()).toBe('new\np 1\np 2\nq\np 3\n');
  });

  test('restores a matching line that was edited by hand after the last apply', async () => {
    write('a 1\nb\na 2\n');
    await apply(every('x', '^a '));
    write('x\nb\na hand\n');
    await apply();
    expect(read()).toBe('a 1\nb\na 2\n');
  });

  test("records matching lines next to the agent's own lines as new lines", async () => {
    write('a\na\n');
    await apply(every('b', '^a'));
    write('b\nb\na\n');
    await apply(every('b', '^a'));
    write('b\nb\nb\nend\n');
    await apply();
    expect(read()).toBe('a\na\na\nend\n');
  });

  test("keeps a line that others wrote in place of the agent's line", async () => {
    write('a 1\nb\na 2\n');
    await apply(every('x', '^a '));
    write('x\nb\nhand\n');
    await apply();
    expect(read()).toBe('a 1\nb\na 2\nhand\n');
    write('a\n');
    await apply(every('b', '^b'));
    write('a\nhand\n');
    await apply();
    expect(read()).toBe('a\nhand\n');
  });

  test("keeps lines between blank lines after the agent's line was deleted", async () => {
    write('# top\n\n# ssh\n\nx 1\n\nPort 22\n\nend\n');
    const declared = every('Port 2222', '^Port ');
    await apply(declared);
    write('# top\n\n# ssh\n\nx 1\n\n\nend\n');
    await apply();
    expect(read().split('\n')).toEqual(expect.arrayContaining(['# top', '# ssh', 'x 1', 'Port 22', 'end']));
  });

  test('records a new matching line between blank lines separately', async () => {
    write('# ssh\n\nx 1\n\nPort 22\n\nend\n');
    const declared = every('Port 2222', '^Port ');
    await apply(declared);
    write('\nPort 99\n\n# ssh\n\nx 1\n\n\nend\n');
    await apply(declared);
    await apply();
    expect(read().split('\n')).toEqual(expect.arrayContaining(['Port 99', 'Port 22']));
  });

  test('restores all lines after `replaces` was changed, and after the line was declared absent', async () => {
    write('p 1\np 2\nq\np 3\n');
    await apply(every('p A', '^p '));
    await apply(line(path(), 'p Z', { match: '^p ' }));
    expect(read()).toBe('p A\np A\nq\np Z\n');
    await apply(every('p Y', '^p '));
    expect(read()).toBe('p Y\np Y\nq\np Y\n');
    await apply(every('p Y', '^p ', { ensure: 'absent' }));
    expect(read()).toBe('q\n');
    await apply();
    expect(read()).toBe('p 1\np 2\nq\np 3\n');
  });
});

describe('validate', () => {
  test('validates the new content before it replaces the file', async () => {
    write('ok\n');
    const validated = (text: string) => line(path(), text, { validate: '! grep -q bad %' });
    expect(await apply(validated('bad'))).toMatchObject([
      {
        status: 'failed',
        message: expect.stringMatching(/new content of .*\/f was refused because `validate` exited with 1/),
      },
    ]);
    expect(read()).toBe('ok\n');
    expect(await apply(validated('good'))).toMatchObject([{ status: 'changed' }]);
    expect(read()).toBe('ok\ngood\n');
  });

  test('validates the file with a new block', async () => {
    write('ok\n');
    const validated = (content: string) => block(path(), 'm', { content, validate: '! grep -q bad %' });
    expect(await apply(validated('bad\n'))).toMatchObject([{ status: 'failed' }]);
    expect(read()).toBe('ok\n');
    expect(await apply(validated('good\n'))).toMatchObject([{ status: 'changed' }]);
    expect(await apply(validated('bad\n'))).toMatchObject([{ status: 'failed' }]);
    expect(read()).toContain('good\n');
    expect(await plan(block(path(), 'm', { content: 'x\n', validate: 'no-such-program-here %' }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('`validate` needs no-such-program-here') },
    ]);
  });

  test('reports a missing program of `validate` in the plan', async () => {
    write('ok\n');
    expect(await plan(line(path(), 'x', { validate: 'no-such-program-here %' }))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('`validate` needs no-such-program-here') },
    ]);
  });
});

describe('the choice of the line', () => {
  test('replaces the last matching line, and keeps an existing line in its position', async () => {
    write('#UMASK 022\nUMASK 022\nUMASK 077\nend\n');
    await apply(line(path(), 'UMASK 027', { match: '^#?UMASK' }));
    expect(read()).toBe('#UMASK 022\nUMASK 022\nUMASK 027\nend\n');
  });

  test('keeps managing a line that no longer matches the pattern', async () => {
    write('PermitRootLogin yes\nPermitRootLogin yes\nend\n');
    const no = line(path(), 'PermitRootLogin no', { match: '^PermitRootLogin yes' });
    await apply(no);
    expect(read()).toBe('PermitRootLogin yes\nPermitRootLogin no\nend\n');
    expect(await apply(no)).toMatchObject([{ status: 'unchanged' }]);
  });

  test('removes the previously declared line when its declaration changes', async () => {
    write('#Port 22\n');
    await apply(line(path(), 'Port 22', { match: '^#Port' }));
    await apply(line(path(), 'Port 2222', { match: '^#Port' }));
    expect(read()).toBe('Port 2222\n');
    await apply();
    expect(read()).toBe('#Port 22\n');
  });

  test('matches non-ASCII letters next to bytes that are not UTF-8', async () => {
    writeFileSync(path(), Buffer.concat([Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from('name=zoë\n')]));
    await apply(line(path(), 'name=Ünal', { match: '^name=\\p{L}{3}$' }));
    expect(readFileSync(path())).toEqual(Buffer.concat([Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from('name=Ünal\n')]));
  });
});

test('stops a pattern that backtracks excessively, and fails only its resource', async () => {
  write(`${'a'.repeat(200)}!\n`);
  const before = process.threadCpuUsage();
  const results = await apply(line(path(), 'x', { match: '^(a+)+$' }), line(path(), 'y'));
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(4_000);
  expect(results).toMatchObject([
    { status: 'failed', message: expect.stringMatching(/took longer than \d+ ms.*line 1/) },
    { status: 'changed' },
  ]);
});

describe('a missing file', () => {
  test('refuses to create a missing file for a line or block', async () => {
    const missing = [
      line(path(), 'x'),
      block(path(), 'm', { content: 'x' }),
      line(path(), 'y', { ensure: 'absent' }),
      block(path(), 'n', { ensure: 'absent' }),
    ];
    for (const results of [await plan(...missing), await apply(...missing)])
      expect(results).toMatchObject([
        { status: 'failed', message: expect.stringMatching(/there is no file .*declare the file with file-unix/) },
        { status: 'failed' },
        { status: 'unchanged' },
        { status: 'unchanged' },
      ]);
  });

  test('adds a line or block to a file that the same operation declares, and removes both', async () => {
    const before = snapshotTree(h.root);
    const all = [file(path(), { mode: '0600' }), line(path(), 'x'), block(path(), 'm', { content: 'y\n' })];
    expect((await plan(...all)).map(({ status }) => status)).toEqual(Array(3).fill('would_change'));
    expect((await apply(...all)).map(({ status }) => status)).toEqual(Array(3).fill('changed'));
    expect(read()).toBe('x\n# BEGIN muster: m\ny\n# END muster: m\n');
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('reports a deleted file as drift, and removes nothing from it', async () => {
    write('');
    await apply(line(path(), 'x'), block(path(), 'm', { content: 'y' }));
    rmSync(path());
    const drift = await h.agent.run(operation('drift'));
    expect(drift.results.map(({ changes }) => changes.map(({ field }) => field))).toEqual([['line'], ['content']]);
    expect(await apply()).toMatchObject([{ status: 'unchanged' }, { status: 'unchanged' }]);
  });
});

describe('an object that is not a regular file', () => {
  const refused = async (message: RegExp): Promise<void> => {
    const before = snapshotTree(h.root);
    for (const resource of [line(path(), 'x'), block(path(), 'm', { content: 'x' })])
      expect(await apply(resource)).toMatchObject([{ status: 'failed', message: expect.stringMatching(message) }]);
    expect(snapshotTree(h.root)).toEqual(before);
  };

  test('refuses to edit a link, a directory, or a FIFO', async () => {
    writeFileSync(`${h.root}/victim`, 'victim\n');
    symlinkSync(`${h.root}/victim`, path());
    await refused(/symbolic link to .*victim.*declare the path of the file itself/);
    rmSync(path());
    mkdirSync(path());
    await refused(/is a directory, not a file/);
    rmSync(path(), { recursive: true });
    spawnSync('mkfifo', [path()]);
    await refused(/is a FIFO/);
  });

  asRoot("refuses a hard link in a user's directory, and a file that is too large", async () => {
    writeFileSync(`${h.root}/victim`, 'victim\n');
    mkdirSync(`${h.root}/home`);
    chownSync(`${h.root}/home`, 65534, 65534);
    linkSync(`${h.root}/victim`, `${h.root}/home/f`);
    expect(await apply(line(`${h.root}/home/f`, 'x'))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/hard link/) },
    ]);
    write('x'.repeat(5 * 1024 * 1024));
    await refused(/only up to 4 MiB/);
  });

  asRoot('keeps owner and permissions, except a set-user-ID bit of another user', async () => {
    write('a\n');
    chownSync(path(), 65534, 1);
    chmodSync(path(), 0o4751);
    await apply(line(path(), 'b'));
    const { uid, gid, mode } = statSync(path());
    expect([uid, gid, (mode & 0o7777).toString(8)]).toEqual([65534, 1, '751']);
  });
});

describe('an incomplete block', () => {
  test.each([
    ['# BEGIN muster: m\nx\n', /line 1 begins the block, but no line ends it/],
    ['x\n# END muster: m\n', /line 2 ends the block, but no line begins it/],
    ['# END muster: m\n# BEGIN muster: m\n', /ends the block before/],
    ['# BEGIN muster: m\n# END muster: m\n# BEGIN muster: m\n# END muster: m\n', /more than once/],
  ])('refuses an incomplete block with the reason: %j', async (text, message) => {
    write(text);
    for (const results of [
      await plan(block(path(), 'm', { content: 'y' })),
      await apply(block(path(), 'm', { content: 'y' })),
      await apply(block(path(), 'm', { ensure: 'absent' })),
    ])
      expect(results).toMatchObject([{ status: 'failed', message: expect.stringMatching(message) }]);
    expect(read()).toBe(text);
  });

  test('reports an incomplete block as drift, and refuses to remove it', async () => {
    write('');
    await apply(block(path(), 'm', { content: 'y' }));
    write('# BEGIN muster: m\ny\n');
    expect((await h.agent.run(operation('drift'))).results).toMatchObject([
      { status: 'would_change', changes: [{ field: 'marker', from: 'broken', to: 'whole' }] },
    ]);
    expect(await apply()).toMatchObject([{ status: 'failed', message: expect.stringMatching(/Repair/) }]);
    write('kept\n# BEGIN muster: m\ny\n# END muster: m\n');
    await apply();
    expect(read()).toBe('kept\n');
  });

  test("refuses a block whose content contains the block's own marker line", async () => {
    write('');
    expect(await apply(block(path(), 'm', { content: 'x\n# END muster: m\n' }))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/contains a marker line of the block/) },
    ]);
    expect(read()).toBe('');
  });
});

test('hides sensitive lines and the lines next to them in all results', async () => {
  write('password=old\nuser=x\n');
  const results = [
    ...(await apply(
      line(path(), 'password=hunter2', { match: '^password=' }, { sensitive_fields: ['line'] }),
      line(path(), 'user=y', { match: '^user=' }),
      block(path(), 'm', { content: 'token=hunter3\n' }, { sensitive_fields: ['content'] }),
    )),
    ...(await apply()),
  ];
  expect(results.map(({ status }) => status)).toEqual(Array(6).fill('changed'));
  expect(JSON.stringify(results)).not.toContain('hunter');
  expect(JSON.stringify(results)).not.toContain('password=old');
  expect(read()).toBe('password=old\nuser=x\n');
});
