import { hash, randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { archiveOf, inPieces } from '../../../test/archives.ts';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain, reportsOf } from '../../../test/domain.ts';
import { getOperation } from '../../../test/reading.ts';
import { uploadFolder } from '../modules/modules.ts';
import { submitOperation } from '../operations/operations.ts';
import { pieceBytes } from '../shared/module-files.ts';

const instance = '01'.repeat(16);
const bytes = randomBytes(2 * pieceBytes + 5);
const sha256 = hash('sha256', bytes, 'hex');
const module = `name: app
supports: [{ platform: linux }]
resources:
  - resource: { file-unix: { path: /opt/app, source: files/app.bin } }
`;

describeAnyDatabase('contents for agents', (fixture) => {
  async function open() {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const [one, other] = [await newAgent(domain, actor, 'web-1'), await newAgent(domain, actor, 'web-2')];
    const archive = await archiveOf([
      { name: 'module.yml', text: module },
      { name: 'files/app.bin', text: bytes as unknown as string },
    ]);
    await uploadFolder(domain.context, actor, inPieces(archive), () => {});
    const submit = (name = 'web-1') =>
      submitOperation(domain.context, actor, name, { kind: 'apply', modules: ['app'], queue: false });
    return { ...domain, one, other, submit };
  }

  test('sends the hash and size of a source, and the content only to the agent that runs the operation', async () => {
    const { links, one, other, submit, now } = await open();
    const id = await submit();
    expect(await links.contentsOf(one.id, id)).toBeNull();
    const sent = await links.nextOperation(one.id);
    expect(sent?.operation.resources).toMatchObject([
      { body: { path: '/opt/app', source: 'files/app.bin' }, source: { sha256, size: bytes.length } },
    ]);
    expect(JSON.stringify(sent).length).toBeLessThan(2000);
    expect(await links.contentsOf(one.id, id)).toEqual(new Map([[sha256, bytes.length]]));
    expect(await links.contentsOf(other.id, id)).toBeNull();
    await links.reported(one.id, instance, 1, [{ type: 'accepted', operation_id: id }]);
    expect(await links.contentsOf(one.id, id)).toEqual(new Map([[sha256, bytes.length]]));
    await links.reported(one.id, instance, 2, reportsOf(id, [], { now: now() }));
    expect(await links.contentsOf(one.id, id)).toBeNull();
  });

  test('reads each piece of content once for many agents', async () => {
    const { links, db } = await open();
    const reads = vi.spyOn(db, 'get');
    const read = async (from: number) => Buffer.from((await links.readContent(sha256, from)) ?? '');
    const both = await Promise.all([read(0), read(1000), read(2 * pieceBytes)]);
    expect(both[0]?.equals(bytes.subarray(0, pieceBytes))).toBe(true);
    expect(both[1]?.equals(bytes.subarray(1000, pieceBytes))).toBe(true);
    expect(both[2]?.equals(bytes.subarray(2 * pieceBytes))).toBe(true);
    await read(500);
    expect(reads.mock.calls.filter(([query]) => query.name === 'contents/piece')).toHaveLength(2);
    expect(await links.readContent(sha256, bytes.length)).toBeNull();
    expect(await links.readContent('a'.repeat(64), 0)).toBeNull();
  });

  test('ends an operation whose source the agent is too old to support', async () => {
    const { context, links, one, submit } = await open();
    const id = await submit();
    expect(await links.nextOperation(one.id, 6)).toBeNull();
    const { status, error } = await getOperation(context, id);
    expect(status).toBe('failed');
    expect(error).toMatch(/a module has a resource with `source`, and the agent web-1 .* does not support it/);
  });
});
