import { createHash, randomBytes } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { archiveOf, inPieces } from '../../../test/archives.ts';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain, reportsOf } from '../../../test/domain.ts';
import { defineQuery } from '../../store/query.ts';
import { submitOperation } from '../operations/operations.ts';
import { createModuleDocuments } from '../shared/module-documents.ts';
import { pieceBytes, readContent } from '../shared/module-files.ts';
import { pruneContents } from './contents.ts';
import { getModule, getModuleFile, removeModule, uploadFolder, uploadModule, validateModule } from './modules.ts';

const pieces = defineQuery('test/pieces', (db) => db.selectFrom('content_pieces').select(['content_id', 'position']));
const contents = defineQuery('test/contents', (db) => db.selectFrom('contents').selectAll());

const moduleText = (extra = '') =>
  `name: site\nsupports: [{ platform: linux }]\nresources:\n  - resource: { file-unix: { path: /etc/site.conf, template: files/site.conf } }\n${extra}`;
const folder = (more: Parameters<typeof archiveOf>[0] = []) =>
  archiveOf([
    // The archive is not sorted, so `module.yml` may come last.
    { name: 'files/site.conf', text: 'listen ${{ agent.name }};\n' },
    { name: 'module.yml', text: moduleText() },
    ...more,
  ]);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describeAnyDatabase('folders of modules', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const { context, db } = domain;
    const upload = (archive: Uint8Array, requireSpace = () => {}) =>
      uploadFolder(context, actor, inPieces(archive), requireSpace);
    const count = async () => [(await db.all(contents, {})).length, (await db.all(pieces, {})).length];
    return { ...domain, actor, upload, count };
  };
  const code = (promise: Promise<unknown>) =>
    promise.then(
      () => 'done',
      (error: unknown) => (error instanceof MusterError ? `${error.code}: ${error.message}` : error),
    );

  test('stores the files of a folder, each content once, and reads them back', async () => {
    const { context, upload, count } = await open();
    const large = randomBytes(3 * pieceBytes + 17);
    const archive = await folder([
      { name: 'files/large.bin', text: large as unknown as string, mode: 0o755 },
      { name: 'files/copy.bin', text: large as unknown as string },
      { name: 'files/empty' },
    ]);
    await upload(archive);
    const { files = [], revision } = await getModule(context, 'site');
    expect(revision).toBe(1);
    expect(files.map(({ path, size, executable }) => [path, size, executable])).toEqual([
      ['files/copy.bin', large.length, false],
      ['files/empty', 0, false],
      ['files/large.bin', large.length, true],
      ['files/site.conf', 26, false],
    ]);
    const read: Uint8Array[] = [];
    for await (const piece of await getModuleFile(context, 'site', 'files/large.bin')) read.push(piece);
    expect(sha256(Buffer.concat(read))).toBe(sha256(large));
    expect(await count()).toEqual([3, 5]);
    await upload(archive);
    expect(await count()).toEqual([3, 5]);
    expect((await readContent(context, sha256(large), pieceBytes + 5))?.length).toBe(pieceBytes - 5);
    expect(await readContent(context, sha256(large), large.length)).toBeNull();
    expect(await code(getModuleFile(context, 'site', 'files/none'))).toContain('module_file_not_found');
  });

  test('resolves a template from a file, and keeps the template when only the module text is uploaded again', async () => {
    const { context, actor, upload } = await open();
    await upload(await folder());
    const [document] = await context.documents.load(['site']);
    expect(document?.templates).toEqual([
      { id: 'files/site.conf', when: {}, content: 'listen ${{ agent.name }};\n', isFile: true },
    ]);
    const text = moduleText('    name: the site\n');
    expect(await validateModule(context, text)).toMatchObject({ valid: true });
    await uploadModule(context, actor, 'site', text);
    expect((await getModule(context, 'site')).files).toHaveLength(1);
    expect((await getModule(context, 'site')).revision).toBe(2);
  });

  test('reports the file and line of an error in a template, and refuses a template that is not text', async () => {
    const { upload } = await open();
    const faulty = await archiveOf([
      { name: 'module.yml', text: moduleText() },
      { name: 'files/site.conf', text: 'a\nb ${{ param.none }}\n' },
    ]);
    expect(await code(upload(faulty))).toMatch(/module_invalid: line 4: files\/site\.conf:2: .*none/);
    const binary = await archiveOf([
      { name: 'module.yml', text: moduleText() },
      { name: 'files/site.conf', text: Buffer.from([0xff, 0xfe]) as unknown as string },
    ]);
    expect(await code(upload(binary))).toContain('cannot be a template');
  });

  test('keeps no part of a refused archive', async () => {
    const { context, upload, count } = await open();
    const large = randomBytes(5 * pieceBytes) as unknown as string;
    const refused = await archiveOf([{ name: 'files/a', text: large }, { name: '../x' }]);
    expect(await code(upload(refused))).toContain('must not contain ".."');
    expect(await code(upload(await archiveOf([{ name: 'files/a', text: large }])))).toContain(
      'no module.yml at its top',
    );
    const nested = await archiveOf([{ name: 'site/module.yml', text: moduleText() }]);
    expect(await code(upload(nested))).toContain('it is at site/module.yml');
    const whole = await folder([{ name: 'files/a', text: large }]);
    expect(await code(upload(whole.subarray(0, whole.length - 1000)))).toContain('not complete');
    expect(await count()).toEqual([0, 0]);
    expect(await code(getModule(context, 'site'))).toContain('module_not_found');
  });

  test('stops an upload when the disk is nearly full', async () => {
    const { upload, count } = await open();
    const archive = await folder([{ name: 'files/a', text: randomBytes(1536 * 1024) as unknown as string }]);
    const full = upload(archive, () => {
      throw new MusterError('storage_full');
    });
    expect(await code(full)).toContain('storage_full');
    expect(await count()).toEqual([0, 0]);
  });

  test('deletes contents after their module is removed, and pieces that an interrupted upload left', async () => {
    const { context, clock, actor, upload, count } = await open();
    await upload(await folder());
    await pruneContents(context);
    expect(await count()).toEqual([1, 1]);
    await removeModule(context, actor, 'site');
    await pruneContents(context);
    expect(await count()).toEqual([0, 0]);
    // Simulates a killed process, which leaves orphaned pieces.
    const stuck = uploadFolder(
      context,
      actor,
      (async function* () {
        const whole = await folder([{ name: 'z', text: randomBytes(6 * pieceBytes) as unknown as string }]);
        yield* inPieces(whole.subarray(0, whole.length - 10_000));
        await new Promise(() => {});
      })(),
      () => {},
    );
    void stuck.catch(() => {});
    // As many pieces as one transaction stores, so that no second transaction follows.
    await expect.poll(async () => (await count())[1]).toBeGreaterThanOrEqual(4);
    await pruneContents(context);
    expect((await count())[1]).toBeGreaterThan(0);
    clock.advance(25 * 3_600_000);
    await pruneContents(context);
    expect(await count()).toEqual([0, 0]);
  });

  test('keeps the files of a removed module while a run or an operation needs them', async () => {
    const domain = await open();
    const { context, actor, upload, count, links, now } = domain;
    const agent = await newAgent(domain, actor, 'web-1');
    await upload(await folder());
    const id = await submitOperation(context, actor, 'web-1', { kind: 'apply', modules: ['site'], queue: true });
    await removeModule(context, actor, 'site');
    await pruneContents(context);
    expect(await count()).toEqual([1, 1]);
    // For agents that start later, a run loads the revision that it uses, possibly in a process that has not cached it.
    const [document] = await createModuleDocuments(context.db).load(['site'], new Map([['site', 1]]));
    expect(document?.templates).toHaveLength(1);
    await links.nextOperation(agent.id);
    await links.reported(agent.id, '01'.repeat(16), 1, reportsOf(id, [], { now: now() }));
    await pruneContents(context);
    expect(await count()).toEqual([0, 0]);
  });

  test('keeps the files of the revision that a text is based on', async () => {
    const { context, actor, upload } = await open();
    await upload(await folder());
    await upload(await folder([{ name: 'files/new', text: 'new' }]));
    const paths = async () => (await getModule(context, 'site')).files?.map(({ path }) => path);
    await uploadModule(context, actor, 'site', moduleText('# a\n'));
    expect(await paths()).toEqual(['files/new', 'files/site.conf']);
    await uploadModule(context, actor, 'site', moduleText('# b\n'), 1);
    expect(await paths()).toEqual(['files/site.conf']);
    const needy = moduleText('  - resource: { file-unix: { path: /n, source: files/new } }\n');
    expect(await validateModule(context, needy, 2)).toMatchObject({ valid: true });
    expect(await validateModule(context, needy, 1)).toMatchObject({ valid: false });
    expect(await code(uploadModule(context, actor, 'site', moduleText(), 9))).toContain('no revision 9');
  });

  test('keeps content that an upload reuses while the content is being pruned', async () => {
    const { context, actor, upload, db } = await open();
    await upload(await folder());
    await removeModule(context, actor, 'site');
    await Promise.all([pruneContents(context), upload(await folder()), pruneContents(context)]);
    await pruneContents(context);
    const [content] = await db.all(contents, {});
    expect(content).toMatchObject({ size: 26 });
    expect(await readContent(context, content?.sha256 ?? '', 0)).toHaveLength(26);
  });
});
