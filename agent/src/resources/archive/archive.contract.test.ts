import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { file, operation, unpacked } from '../../converge/test/desired.ts';
import { madeArchive } from '../../converge/test/made-archive.ts';

/** Tests archives that the system's programs create, and hostile archives, on a real file system. */

let home: string;
let agent: TestAgent;
const path = () => `${home}/root/app`;
beforeEach(async () => {
  home = temporaryDirectory();
  for (const folder of ['data', 'root']) mkdirSync(`${home}/${folder}`, { mode: 0o700 });
  agent = await startAgent(`${home}/data`);
});
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});
const run = async (...resources: ResolvedResource[]) =>
  (await agent.run(operation('apply', resources))).results.map(({ status, message }) => ({ status, message }));
const plan = async (...resources: ResolvedResource[]) => (await agent.run(operation('plan', resources))).results;
const changed = [{ status: 'changed' }];

/** Applies an archive that must be refused without leaving files behind. */
async function refused(archive: Buffer, message: RegExp, body: Parameters<typeof unpacked>[2] = {}): Promise<void> {
  const results = await run(unpacked(path(), archive, body));
  expect(results).toMatchObject([{ status: 'failed', message: expect.stringMatching(message) }]);
  expect(readdirSync(`${home}/root`)).toEqual([]);
}

const members =
  'mkdir -p app/sub; echo x > "app/a b"; printf y > app/sub/y; chmod 4777 app/sub/y; ln -s ../sub/y app/sub/l';
const present = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

test.each([
  ['tar', 'tar -cf "$1" app'],
  ['gzip', 'tar -czf "$1" app'],
  ['xz', 'tar -cJf "$1" app'],
  ['zstd', 'tar --zstd -cf "$1" app'],
  ['zip', 'zip -qry "$1.zip" app; mv "$1.zip" "$1"'],
])('unpacks an archive that %s created', async (program, pack) => {
  if (!present(program)) return;
  const archive = madeArchive(members, pack);
  expect(await run(unpacked(path(), archive, { strip: 1, exclude: ['a *'] }))).toMatchObject(changed);
  expect(readdirSync(path(), { recursive: true }).sort()).toEqual(['sub', 'sub/l', 'sub/y']);
  expect(readFileSync(`${path()}/sub/y`, 'utf8')).toBe('y');
  expect(readlinkSync(`${path()}/sub/l`)).toBe('../sub/y');
  expect(lstatSync(`${path()}/sub/y`).mode & 0o7777).toBe(0o755);
  expect(await plan(unpacked(path(), archive, { strip: 1, exclude: ['a *'] }))).toMatchObject([{ action: 'none' }]);
});

test('refuses members with paths outside the directory', async () => {
  const moved = (transform: string) => madeArchive('echo x > f', `tar -czPf "$1" --transform='${transform}' f`);
  await refused(moved('s,f,../f,'), /"\.\.\/f" leaves the directory with "\.\."/);
  await refused(moved('s,f,a/../../f,'), /leaves the directory/);
  await refused(moved('s,f,/tmp/f,'), /"\/tmp\/f" has an absolute path/);
});

test('refuses links to paths outside the directory, and members below links', async () => {
  await refused(madeArchive('ln -s /etc l'), /symbolic link "l" leads out of the archive, to "\/etc"/);
  await refused(madeArchive('mkdir d; ln -s ../.. d/l'), /"d\/l" leads out/);
  await refused(madeArchive('mkdir -p d/e; ln -s ../../x d/e/l'), /"e\/l" leads out/, { strip: 1 });
  await refused(madeArchive('mkdir -p a/b; ln -s ../a a/b/c; ln -s a/b/c/../.. l'), /"l" leads out/);
  const below = madeArchive('ln -s . l; echo x > f', 'tar -cf "$1" l; tar -rf "$1" --transform="s,f,l/f," f');
  await refused(below, /"l\/f" is below the symbolic link "l"/);
  const hard = madeArchive('echo x > f; ln f g', 'tar -czf "$1" --transform="flags=h;s,.*,/etc/passwd," f g');
  await refused(hard, /hard link, but its target is not a member|absolute path/);
  if (present('zip'))
    await refused(madeArchive('ln -s /etc l', 'zip -qry "$1.zip" l; mv "$1.zip" "$1"'), /"l" leads out/);
});

test('writes nothing through an excluded link', async () => {
  const outside = `${home}/outside`;
  mkdirSync(outside);
  const files = `echo x > kept; mkdir docs; echo x > docs/evil`;
  const link = `cd ..; mkdir l; ln -s ${outside} l/docs; tar -cPf "$1" -C l docs -C ../d kept docs/evil; gzip -c "$1" > "$1.gz"; mv "$1.gz" "$1"`;
  await refused(madeArchive(files, link), /cannot be read/, { exclude: ['docs'] });
  expect(readdirSync(outside)).toEqual([]);
});

test('refuses devices, FIFOs, and other special files', async () => {
  await refused(madeArchive('mkfifo p'), /"p" is neither a file/);
  if (process.geteuid?.() === 0) await refused(madeArchive('mknod dev c 1 3'), /"dev" is neither a file/);
});

test('unpacks hard links between members', async () => {
  expect(await run(unpacked(path(), madeArchive('echo x > f; ln f g')))).toMatchObject(changed);
  expect(readFileSync(`${path()}/g`, 'utf8')).toBe('x\n');
});

/** Returns the ustar header of an empty file. */
function emptyFile(): Buffer {
  const block = Buffer.alloc(512);
  block.write('f', 0);
  for (const [text, position] of [
    ['0000644', 100],
    ['00000000000', 124],
    ['00000000000', 136],
    ['        0', 148],
    ['ustar', 257],
  ] as const)
    block.write(text, position);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}`, 148);
  block[154] = 0;
  return block;
}

test('refuses decompression bombs and archives with too many members before it unpacks anything', async () => {
  const many = Buffer.alloc(512 * 100_000, emptyFile());
  await refused(gzipSync(many, { level: 1 }), /more than 65536 members/);
  // A sparse file is large, but takes up few bytes in the archive.
  const sparse = madeArchive('truncate -s 9G f', 'tar -Sczf "$1" f');
  await refused(sparse, /unpacks to 9663676416 bytes; the maximum is 8 GiB/);
  await refused(madeArchive('truncate -s 2G f', 'tar -Sczf "$1" f'), /more than 200 times its size/);
});

test('refuses a file that is not an archive, and a truncated archive', async () => {
  await refused(Buffer.from('<html>not found</html>'), /not an archive in the format/);
  const archive = madeArchive('head -c 100000 /dev/urandom > f');
  await refused(archive.subarray(0, 50_000), /cannot be read: /);
  await refused(madeArchive('echo x > f'), /`strip` and `exclude` leave no member/, { strip: 1 });
});

test('keeps the old tree if the new archive is refused', async () => {
  await run(unpacked(path(), madeArchive('echo 1 > f')));
  expect(await run(unpacked(path(), madeArchive('ln -s /etc l')))).toMatchObject([{ status: 'failed' }]);
  expect(readFileSync(`${path()}/f`, 'utf8')).toBe('1\n');
  expect(await plan(unpacked(path(), madeArchive('echo 1 > f'), {}))).toBeDefined();
});

test('refuses to delete entries that others added', async () => {
  const [one, two] = [madeArchive('echo 1 > f'), madeArchive('echo 2 > f')];
  const ours = file(`${path()}/conf`, { content: 'x' });
  await run(unpacked(path(), one), ours);
  writeFileSync(`${path()}/upload`, 'data');
  expect(await run(unpacked(path(), two), ours)).toMatchObject([
    { status: 'failed', message: expect.stringContaining('such as upload: they would be lost') },
    { status: 'unchanged' },
  ]);
  expect(await run()).toMatchObject([{ status: 'changed' }, { status: 'failed' }]);
  expect(readdirSync(path()).sort()).toEqual(['f', 'upload']);
});

test('switches between releases, and returns to an old one without unpacking it again', async () => {
  const archives = [1, 2, 3].map((version) => madeArchive(`echo ${version} > f`));
  const release = (i: number) => unpacked(path(), archives[i] as Buffer, { keep: 2 });
  const current = () => readFileSync(`${path()}/current/f`, 'utf8').trim();
  const kept = () => readdirSync(`${path()}/releases`).filter((name) => !name.startsWith('.'));
  for (const i of [0, 1]) {
    expect(await run(release(i))).toMatchObject(changed);
    expect(current()).toBe(String(i + 1));
  }
  const before = lstatSync(`${path()}/current/../${readlinkSync(`${path()}/current`).slice(9)}`).ino;
  writeFileSync(`${path()}/current/log`, 'of the application');
  expect(await run(release(0))).toMatchObject(changed);
  expect(current()).toBe('1');
  expect(await run(release(1))).toMatchObject(changed);
  expect(readFileSync(`${path()}/current/log`, 'utf8')).toBe('of the application');
  expect(lstatSync(`${path()}/current/.`).ino).toBe(before);
  expect(await run(release(2))).toMatchObject(changed);
  expect([current(), kept().length]).toEqual(['3', 2]);
  expect(await run(unpacked(path(), madeArchive('ln -s /etc l'), { keep: 2 }))).toMatchObject([{ status: 'failed' }]);
  expect([current(), kept().length]).toEqual(['3', 2]);
  await run();
  expect(existsSync(path())).toBe(false);
});

test.runIf(process.geteuid?.() === 0)('refuses a directory in which other users can create names', async () => {
  spawnSync('chown', ['nobody', `${home}/root`]);
  expect(await run(unpacked(path(), madeArchive('echo x > f')))).toMatchObject([
    { status: 'failed', message: expect.stringContaining('users other than root can change the names') },
  ]);
});
