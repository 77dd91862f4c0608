import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { describe, expect, test } from 'vitest';
import { directory, file, line, operation, script } from '../../converge/test/desired.ts';
import { useAgent } from '../../converge/test/harness.ts';

const h = useAgent();
const user = 41_000;
const at = (name: string): string => `${h.root}/${name}`;
const copy = (body: Parameters<typeof file>[1] = {}) => file(at('copy'), { copy_of: at('original'), ...body });
const plan = (...resources: ReturnType<typeof file>[]) => h.agent.run(operation('plan', resources));
const apply = (...resources: ReturnType<typeof file>[]) => h.agent.run(operation('apply', resources));
/** Creates a directory that is owned by an unprivileged user. */
function userDirectory(name: string, mode = 0o755): void {
  mkdirSync(at(name));
  chownSync(at(name), user, user);
  chmodSync(at(name), mode);
}

describe('copies of other files', () => {
  test('copies the original again after it changes', async () => {
    writeFileSync(at('original'), 'one\n');
    await apply(copy());
    writeFileSync(at('original'), 'three\n');
    expect((await h.agent.run(operation('drift'))).results).toMatchObject([
      { changes: [{ field: 'content', from: '4 bytes', to: `6 bytes, as ${at('original')}` }], diff: null },
    ]);
    expect((await apply(copy())).results).toMatchObject([{ status: 'changed', diff: null }]);
    expect(readFileSync(at('copy'), 'utf8')).toBe('three\n');
  });

  test('reports no drift while the original is missing, but fails to apply', async () => {
    writeFileSync(at('original'), 'one\n');
    await apply(copy());
    rmSync(at('original'));
    expect((await h.agent.run(operation('drift'))).results).toEqual([]);
    const failed = { status: 'failed', message: expect.stringContaining(`there is no file ${at('original')} to copy`) };
    expect((await plan(copy())).results).toMatchObject([failed]);
    expect((await apply(copy())).results).toMatchObject([failed]);
    expect(readFileSync(at('copy'), 'utf8')).toBe('one\n');
  });

  test('copies content that earlier resources write in the same apply', async () => {
    writeFileSync(at('lines'), 'first\n');
    const resources = [
      file(at('new/original'), { content: 'one\n' }),
      file(at('copy'), { copy_of: at('new/original') }),
      line(at('lines'), 'second'),
      file(at('copied-lines'), { copy_of: at('lines') }),
      file(at('copy-of-copy'), { copy_of: at('copy') }),
    ];
    expect((await plan(...resources)).results.map(({ status }) => status)).toEqual(Array(5).fill('would_change'));
    expect((await apply(...resources)).finished.status).toBe('succeeded');
    expect(readFileSync(at('copy-of-copy'), 'utf8')).toBe('one\n');
    expect(readFileSync(at('copied-lines'), 'utf8')).toBe('first\nsecond\n');

    const changed = [file(at('new/original'), { content: 'two\n' }), ...resources.slice(1)];
    const planned = await plan(...changed);
    expect(planned.results.map(({ status }) => status)).toEqual([
      ...['would_change', 'would_change', 'unchanged', 'unchanged', 'would_change'],
    ]);
    expect(planned.results[1]?.changes).toEqual([
      { field: 'content', from: '4 bytes', to: `the later content of ${at('new/original')}` },
    ]);
    await apply(...changed);
    expect(readFileSync(at('copy-of-copy'), 'utf8')).toBe('two\n');
    expect((await apply(...changed)).results.map(({ status }) => status)).toEqual(Array(5).fill('unchanged'));
  });

  test('copies a file that a script creates', async () => {
    const made = script('make', { apply: `echo made > ${at('original')}`, creates: at('original') });
    expect((await plan(made, copy())).results.map(({ status }) => status)).toEqual(['would_change', 'would_change']);
    expect((await apply(made, copy())).finished.status).toBe('succeeded');
    expect(readFileSync(at('copy'), 'utf8')).toBe('made\n');
  });

  test('keeps an existing file with if_exists: keep', async () => {
    writeFileSync(at('copy'), 'theirs\n');
    expect((await apply(copy({ if_exists: 'keep' }))).results).toMatchObject([{ status: 'unchanged' }]);
  });

  test('follows a link that root owns, but not one that a user owns', async () => {
    writeFileSync(at('target'), 'one\n');
    symlinkSync('target', at('original'));
    await apply(copy());
    expect(readFileSync(at('copy'), 'utf8')).toBe('one\n');
    userDirectory('home');
    symlinkSync(at('target'), at('home/link'));
    expect((await plan(copy({ copy_of: at('home/link') }))).results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('it is not followed') },
    ]);
  });

  test('refuses to copy its own path, a directory, or a file that is too large', async () => {
    mkdirSync(at('folder'));
    writeFileSync(at('huge'), '');
    truncateSync(at('huge'), 513 * 1024 * 1024);
    const results = [];
    for (const copy_of of [at('copy'), at('folder'), at('huge')])
      results.push(...(await plan(copy({ copy_of }))).results.map(({ message }) => message));
    expect(results).toEqual([
      expect.stringContaining('must be the path of another file'),
      expect.stringContaining('is a directory, which cannot be copied'),
      expect.stringContaining('copies at most 512 MiB'),
    ]);
  });

  test('shows no content or hash of a copy, even after its declaration changes or is removed', async () => {
    writeFileSync(at('original'), 'pin 1234\n', { mode: 0o600 });
    const results = [
      ...(await apply(copy({ mode: '0600' }))).results,
      ...(await apply(file(at('copy'), { content: 'public\n', mode: '0600' }))).results,
      ...(await apply(copy({ mode: '0600' }))).results,
      ...(await apply()).results,
    ];
    expect(results.map(({ status }) => status)).toEqual(Array(4).fill('changed'));
    expect(results.map(({ diff }) => diff)).toEqual([null, null, null, null]);
    const sent = JSON.stringify([...results]);
    expect(sent).not.toContain('1234');
    expect(sent).not.toContain('ddcf82b1ead8');
  });

  test('grants no permission that the original lacks, unless it declares a mode', async () => {
    const modes = async (original: number, body: Parameters<typeof file>[1] = {}): Promise<string> => {
      chmodSync(at('original'), original);
      await apply(copy(body));
      expect((await apply(copy(body))).results).toMatchObject([{ status: 'unchanged' }]);
      return (statSync(at('copy')).mode & 0o7777).toString(8);
    };
    writeFileSync(at('original'), 'secret\n');
    expect(await modes(0o640)).toBe('640');
    expect(await modes(0o600)).toBe('600');
    expect(await modes(0o644)).toBe('600');
    expect(await modes(0o600, { mode: '0644' })).toBe('644');
    writeFileSync(at('original'), 'another secret\n');
    expect(await modes(0o600)).toBe('600');
    rmSync(at('copy'));
    expect(await modes(0o664)).toBe('644');
    writeFileSync(at('copy'), 'theirs\n');
    chownSync(at('copy'), user, user);
    chmodSync(at('copy'), 0o4666);
    expect(await modes(0o4664)).toBe('644');
  });

  test('hides the output of validate for a copy of a file with a secret', async () => {
    const resources = [
      file(at('original'), { content: 'hunter2\n' }, { sensitive_fields: ['content'] }),
      file(at('between'), { copy_of: at('original') }),
      file(at('copy'), { copy_of: at('between'), validate: 'cat % >&2; false' }),
    ];
    const { results } = await apply(...resources);
    expect(results[2]?.status).toBe('failed');
    expect(JSON.stringify(results)).not.toContain('hunter2');
  });
});

describe('files that a user can replace', () => {
  test('refuses to make a private file readable to others if a user may have moved it there', async () => {
    userDirectory('home');
    writeFileSync(at('home/key'), 'secret\n', { mode: 0o600 });
    const refused = [{ status: 'failed', message: expect.stringContaining('not every user can read it') }];
    const open = copy({ copy_of: at('home/key'), mode: '0644' });
    expect((await plan(open)).results).toMatchObject(refused);
    expect((await apply(open)).results).toMatchObject(refused);
    expect((await apply(copy({ copy_of: at('home/key'), mode: '0600' }))).finished.status).toBe('succeeded');
  });

  test('refuses to make a file from a private directory readable to others if a user may have moved it there', async () => {
    userDirectory('home');
    mkdirSync(at('home/private'), { mode: 0o700 });
    mkdirSync(at('home/private/below'), { mode: 0o755 });
    writeFileSync(at('home/private/below/key'), 'secret\n', { mode: 0o644 });
    const open = copy({ copy_of: at('home/private/below/key') });
    expect((await plan(open)).results).toMatchObject([{ status: 'failed' }]);
    chmodSync(at('home/private'), 0o755);
    expect((await apply(open)).finished.status).toBe('succeeded');
  });

  test('refuses to copy a file that has a second hard link', async () => {
    userDirectory('home');
    writeFileSync(at('private'), 'secret\n', { mode: 0o644 });
    linkSync(at('private'), at('home/name'));
    expect((await plan(copy({ copy_of: at('home/name') }))).results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('more than one hard link') },
    ]);
  });

  test('removes the copy together with its directory', async () => {
    writeFileSync(at('original'), 'one\n');
    const resources = [directory(at('new')), file(at('new/copy'), { copy_of: at('original') })];
    await apply(...resources);
    expect((await apply()).results.map(({ status }) => status)).toEqual(['changed', 'changed']);
  });
});
