import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideOwnership, type OwnedObject, setIdBits } from '../../host/files/decide-ownership.ts';
import { decideHandBack, type RecordedFile, recordedOwnership } from './ownership.ts';

const id = fc.constantFrom(0, 41_000, 41_001);
const mode = fc.integer({ min: 0, max: 0o7777 });
const ownership = fc.record({ uid: id, gid: id, mode });
const requested = fc.record({ uid: fc.option(id), gid: fc.option(id), mode }, { requiredKeys: [] });
const content = fc.constantFrom('kept' as const, 'edited' as const, 'written' as const);
const object = fc.oneof(
  content.map((what): OwnedObject => ({ type: 'file', content: what })),
  fc.constantFrom<OwnedObject>({ type: 'directory' }, { type: 'symlink' }),
);

describe('the decision about owner and permissions', () => {
  test('sets the declared owner, group, and mode', () => {
    fc.assert(
      fc.property(requested, fc.option(ownership), object, ownership, (wants, found, what, created) => {
        const target = decideOwnership(wants, found, what, created);
        const base = found ?? created;
        expect(target.uid).toBe(wants.uid ?? base.uid);
        expect(target.gid).toBe(wants.gid ?? base.gid);
        if (wants.mode !== undefined) expect(target.mode).toBe(wants.mode);
        // No permission is added unless it is declared.
        else expect(target.mode & ~base.mode).toBe(0);
      }),
    );
  });

  test('keeps a set-ID bit only if the owner, group, and content of the file stay the same', () => {
    fc.assert(
      fc.property(requested, ownership, content, ownership, ({ mode: _, ...wants }, found, what, created) => {
        const target = decideOwnership(wants, found, { type: 'file', content: what }, created);
        const stays =
          (wants.uid === undefined || wants.uid === found.uid) &&
          (wants.gid === undefined || wants.gid === found.gid) &&
          (what === 'kept' || found.uid === created.uid);
        expect(target.mode & setIdBits).toBe(stays ? found.mode & setIdBits : 0);
        const closes = what === 'written' && found.uid !== created.uid;
        expect(target.mode & 0o1777).toBe(found.mode & (closes ? 0o1755 : 0o1777));
      }),
    );
  });

  test('makes the same ownership decision again after applying it', () => {
    fc.assert(
      fc.property(requested, ownership, object, ownership, (wants, found, what, created) => {
        const known = {
          ...wants,
          ...(wants.uid === null ? { uid: 5 } : {}),
          ...(wants.gid === null ? { gid: 5 } : {}),
        };
        const target = decideOwnership(known, found, what, created);
        const still: OwnedObject = what.type === 'file' ? { type: 'file', content: 'kept' } : what;
        expect(decideOwnership(known, target, still, created)).toEqual(target);
      }),
    );
  });

  test('keeps the permissions of a directory', () => {
    const found = { uid: 41_000, gid: 41_000, mode: 0o2775 };
    const created = { uid: 0, gid: 0, mode: 0o755 };
    expect(decideOwnership({ uid: 0, gid: 0 }, found, { type: 'directory' }, created)).toEqual({
      uid: 0,
      gid: 0,
      mode: 0o2775,
    });
  });
});

describe('the decision how a file is given back', () => {
  const root = { uid: 0, gid: 0, mode: 0o644 };
  const hash = fc.constantFrom('a', 'b', 'c');
  const sized = hash.map((sha256) => ({ sha256, size: 1 }));
  const state = fc.record({ uid: id, gid: id, mode, sha256: hash, size: fc.constant(1) });
  const record: fc.Arbitrary<RecordedFile> = fc.record({
    uid: id,
    gid: id,
    mode,
    ownerName: fc.constant(''),
    groupName: fc.constant(''),
    touched: fc.subarray(['owner', 'group', 'mode', 'content']),
    content: fc.option(sized),
    states: fc.array(state, { maxLength: 3 }),
  });
  const present = fc.option(
    fc.record({
      uid: id,
      gid: id,
      mode,
      content: fc.option(fc.record({ sha256: fc.option(hash), size: fc.constant(1) })),
    }),
  );

  test('restores content and set-ID bits only for an owner who had them in this file', () => {
    fc.assert(
      fc.property(record, present, (before, found) => {
        const back = decideHandBack(before, found, root);
        if (back.is === 'refused') return;
        const sha256 = back.content.is === 'restored' ? before.content?.sha256 : found?.content?.sha256;
        const states = before.states?.filter((one) => one.sha256 === sha256) ?? [];
        const { target } = back;
        const changesHands = found === null || (found.uid !== target.uid && found.uid !== root.uid);
        if (changesHands || back.content.is === 'restored')
          expect(states.some(({ uid }) => uid === target.uid || uid === root.uid)).toBe(true);
        const isSame = found !== null && found.uid === target.uid && found.gid === target.gid;
        const gained = target.mode & setIdBits & ~(isSame ? found.mode : 0);
        if (gained !== 0)
          expect(
            states.some(
              ({ uid, gid, mode: had }) => uid === target.uid && gid === target.gid && (had & gained) === gained,
            ),
          ).toBe(true);
        // Another user may have the existing file open.
        if (changesHands || gained !== 0) expect(back.content.is).not.toBe('kept');
      }),
      { numRuns: 2000 },
    );
  });

  test('restores the recorded group and permissions together with the recorded owner', () => {
    fc.assert(
      fc.property(record, ownership, (before, found) => {
        if (before.touched.includes('owner'))
          expect(recordedOwnership(before, found)).toEqual({ uid: before.uid, gid: before.gid, mode: before.mode });
      }),
    );
  });

  test('refuses a file whose record has an owner but no content', () => {
    const before = { ...root, ownerName: 'root', groupName: 'root', touched: ['owner'], content: null };
    const found = { uid: 41_000, gid: 0, mode: 0o644, content: { sha256: 'a', size: 1 } };
    expect(decideHandBack(before, found, root)).toEqual({ is: 'refused' });
    // An earlier release may have recorded the content after it changed the owner.
    const content = { sha256: 'b', size: 1 };
    expect(decideHandBack({ ...before, touched: ['content', 'owner'], content }, found, root)).toEqual({
      is: 'refused',
    });
    expect(decideHandBack({ ...before, touched: ['content'], content }, { ...found, uid: 0 }, root)).toMatchObject({
      is: 'possible',
      content: { is: 'restored' },
    });
    expect(decideHandBack(before, { ...found, uid: 0 }, root)).toMatchObject({ is: 'possible', target: root });
  });
});
