import { parseModule, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { type LinkGroup, parseGroup, readGroup } from '../../host/alternatives.ts';
import { exists } from '../../host/read-system.ts';
import type { Machine } from '../provider/provider.ts';
import { alternatives, diffAlternatives, diffAlternativesRemoval } from './alternatives.ts';

const declared = (body: Partial<ResourceBodies['alternatives']> = {}): ResolvedResource<'alternatives'> => ({
  key: 'alternatives:editor',
  module: 'site',
  id: null,
  name: null,
  type: 'alternatives',
  identity: 'editor',
  body: { name: 'editor', path: '/bin/ed', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});
const upload = (body: ResourceBodies['alternatives']) =>
  parseModule(
    JSON.stringify({
      name: 'site',
      supports: [{ platform: 'linux' }],
      resources: [{ id: 'it', resource: { alternatives: body } }],
    }),
  );
const group = (differing: Partial<LinkGroup> = {}): LinkGroup => ({
  mode: 'auto',
  target: '/bin/vim',
  best: '/bin/vim',
  candidates: ['/bin/ed', '/bin/vim'],
  registered: {},
  brokenSlaves: [],
  link: { path: '/usr/bin/editor', state: 'linked' },
  ...differing,
});
const manual = group({ mode: 'manual', target: '/bin/ed' });

/** Output from dpkg 1.21.22, with fewer slave links. */
const printed = `Name: editor
Link: /usr/bin/editor
Slaves:
 editor.1.gz /usr/share/man/man1/editor.1.gz
 editor.da.1.gz /usr/share/man/da/man1/editor.1.gz
Status: auto
Best: /bin/vim
Value: /bin/vim

Alternative: /bin/ed
Priority: -100
Slaves:
 editor.1.gz /usr/share/man/man1/ed.1.gz

Alternative: /bin/vim
Priority: 30
Slaves:
 editor.1.gz /usr/share/man/man1/vim.1.gz
 editor.da.1.gz /usr/share/man/da/man1/vim.1.gz
`;

type ReadLinks = Parameters<typeof parseGroup>[1];
/** Reads links on a machine where the group's own link is correct. */
const linked = (slave: ReadLinks['slave']): ReadLinks => ({
  slave,
  link: () => '/etc/alternatives/editor',
  isThere: () => true,
});

test('reads the mode, target, and candidates of a link group', () => {
  const read = (text: string) =>
    parseGroup(
      text,
      linked((_name, path) => ({ target: path, isThere: true })),
    );
  const page = { link: '/usr/share/man/man1/editor.1.gz', name: 'editor.1.gz' };
  const danish = { link: '/usr/share/man/da/man1/editor.1.gz', name: 'editor.da.1.gz' };
  const registered = {
    '/bin/ed': { priority: -100, slaves: [{ ...page, path: '/usr/share/man/man1/ed.1.gz' }] },
    '/bin/vim': {
      priority: 30,
      slaves: [
        { ...page, path: '/usr/share/man/man1/vim.1.gz' },
        { ...danish, path: '/usr/share/man/da/man1/vim.1.gz' },
      ],
    },
  };
  expect(read(printed)).toEqual(group({ registered }));
  expect(read(printed.replace('Status: auto', 'Status: manual').replace('Value: /bin/vim', 'Value: none'))).toEqual(
    group({ mode: 'manual', target: null, registered }),
  );
  expect(() => read('usage: alternatives --install')).toThrow('in an unknown format');
});

test.skipIf(!exists('/usr/bin/update-alternatives'))('reads a link group on this machine', async () => {
  const context = { clock: systemClock, startedProcess: () => {} };
  expect(await readGroup('muster-has-no-such-group', context)).toBeNull();
  // Every Debian system has this group.
  const awk = await readGroup('awk', context);
  expect(awk?.candidates).toContain(awk?.best);
  await expect(readGroup('/', context)).rejects.toThrow('cannot read the link group /');
});

test('finds slave links that do not belong to the chosen candidate', () => {
  const broken = (targets: Readonly<Record<string, string>>, missing: string[] = [], text = printed) =>
    parseGroup(
      text,
      linked((name, path) => ({
        target: targets[name] ?? null,
        isThere: path !== null && !missing.includes(path),
      })),
    ).brokenSlaves;
  const page = '/usr/share/man/man1/vim.1.gz';
  const danish = '/usr/share/man/da/man1/vim.1.gz';
  expect(broken({ 'editor.1.gz': page, 'editor.da.1.gz': danish })).toEqual([]);
  expect(broken({ 'editor.1.gz': '/usr/share/man/man1/ed.1.gz', 'editor.da.1.gz': danish })).toEqual(['editor.1.gz']);
  expect(broken({ 'editor.1.gz': page })).toEqual(['editor.da.1.gz']);
  const removed = (path: string, text = printed) =>
    parseGroup(text, {
      slave: (name) => ({ target: name === 'editor.1.gz' ? page : danish, isThere: true }),
      link: (link) => (link === path ? null : '/etc/alternatives/editor'),
      isThere: (link) => link !== path,
    }).brokenSlaves;
  expect(removed('/usr/share/man/man1/editor.1.gz')).toEqual(['editor.1.gz']);
  expect(removed('/usr/share/man/man1/other.1.gz')).toEqual([]);
  // update-alternatives creates no slave link to a missing file, and none for a candidate without that slave.
  expect(broken({ 'editor.1.gz': page }, [danish])).toEqual([]);
  const ed = printed.replace('Value: /bin/vim', 'Value: /bin/ed');
  expect(broken({ 'editor.1.gz': '/usr/share/man/man1/ed.1.gz', 'editor.da.1.gz': danish }, [], ed)).toEqual([
    'editor.da.1.gz',
  ]);
});

test.each([
  ['/etc/alternatives/editor', true, 'linked'],
  ['/opt/other', true, 'other file'],
  [null, true, 'other file'],
  [null, false, 'missing'],
] as const)('reads a link to %s, whose path exists: %s, as %s', (target, isThere, state) => {
  const read: ReadLinks = {
    slave: () => ({ target: null, isThere: false }),
    link: () => target,
    isThere: () => isThere,
  };
  expect(parseGroup(printed, read).link).toEqual({ path: '/usr/bin/editor', state });
});

test('restores a missing link, and reports a different file at its path', () => {
  const missing = { ...manual, link: { path: '/usr/bin/editor', state: 'missing' as const } };
  expect(diffAlternatives(declared(), { group: missing })).toEqual({
    action: 'update',
    changes: [{ field: 'link', from: null, to: '/usr/bin/editor' }],
    diff: null,
  });
  const other = { ...manual, link: { path: '/usr/bin/editor', state: 'other file' as const } };
  expect(diffAlternatives(declared(), { group: other })).toMatchObject({
    changes: [{ field: 'link', from: 'another file', to: '/usr/bin/editor' }],
    awaits: [{ message: expect.stringContaining('"/usr/bin/editor" is not the link of the group editor') }],
  });
});

test('reports each field in which a link group differs', () => {
  expect(diffAlternatives(declared(), { group: group() })).toEqual({
    action: 'update',
    changes: [
      { field: 'path', from: '/bin/vim', to: '/bin/ed' },
      { field: 'mode', from: 'auto', to: 'manual' },
    ],
    diff: null,
  });
  expect(diffAlternatives(declared({ path: '/bin/vim' }), { group: group() }).changes).toEqual([
    { field: 'mode', from: 'auto', to: 'manual' },
  ]);
  expect(diffAlternatives(declared(), { group: { ...manual, brokenSlaves: ['editor.1.gz'] } }).changes).toEqual([
    { field: 'slaves', from: 'broken: editor.1.gz', to: 'linked' },
  ]);
  expect(diffAlternatives(declared(), { group: manual }).action).toBe('none');
});

test('restores the automatic mode if the group is declared absent', () => {
  const absent = declared({ ensure: 'absent' });
  expect(diffAlternatives(absent, { group: manual })).toMatchObject({
    action: 'remove',
    changes: [
      { field: 'path', from: '/bin/ed', to: '/bin/vim' },
      { field: 'mode', from: 'manual', to: 'auto' },
    ],
  });
  expect(diffAlternatives(absent, { group: group() }).action).toBe('none');
  expect(diffAlternatives(absent, { group: null }).action).toBe('none');
});

test('reports a missing group, and lists the candidates if the declared path is not a candidate', () => {
  const message = (body: Partial<ResourceBodies['alternatives']>, seen: LinkGroup | null) =>
    diffAlternatives(declared(body), { group: seen }).awaits?.[0]?.message;
  expect(message({}, null)).toMatch(/^there is no link group editor on this machine/);
  expect(message({ path: '/bin/nano' }, group())).toBe(
    '"/bin/nano" is not a candidate of the link group editor; its candidates are /bin/ed, /bin/vim',
  );
  const candidates = Array.from({ length: 300 }, (_, i) => `/opt/${i}/${'x'.repeat(4000)}`);
  const long = message({ path: '/bin/nano' }, group({ candidates })) ?? '';
  expect(long).toMatch(/, 290 more$/);
  expect(long.length).toBeLessThan(2500);
});

test('restores the earlier choice, or the automatic mode if that candidate no longer exists', async () => {
  const before = await alternatives.remember(declared(), { group: manual }, {} as never, null, {} as Machine);
  expect(before).toEqual({ mode: 'manual', path: '/bin/ed' });
  expect(diffAlternativesRemoval(before, { group: { ...manual, target: '/bin/vim' } }).changes).toEqual([
    { field: 'path', from: '/bin/vim', to: '/bin/ed' },
  ]);
  const withoutCandidate = group({ mode: 'manual', candidates: ['/bin/vim'] });
  expect(diffAlternativesRemoval(before, { group: withoutCandidate })).toMatchObject({
    changes: [{ field: 'mode', from: 'manual', to: 'auto' }],
    message: expect.stringContaining('no longer a candidate'),
  });
  expect(diffAlternativesRemoval(before, { group: null }).action).toBe('none');
});

test('registers its candidate with the declared priority and slave links', () => {
  const slaves = ['/usr/share/man/man1/editor.1.gz editor.1.gz /opt/ed/ed.1'];
  const own = declared({ path: '/opt/ed/ed', link: '/usr/bin/editor', priority: 70, slaves });
  const registration = {
    priority: 70,
    slaves: [{ link: '/usr/share/man/man1/editor.1.gz', name: 'editor.1.gz', path: '/opt/ed/ed.1' }],
  };
  const to = 'priority 70, /usr/share/man/man1/editor.1.gz editor.1.gz /opt/ed/ed.1';
  expect(diffAlternatives(own, { group: null, isMissing: true })).toMatchObject({
    action: 'create',
    changes: [{ field: 'registered', from: null, to }, { field: 'path' }, { field: 'mode' }, { field: 'link' }],
    awaits: [{ kind: 'programs', message: expect.stringContaining('"/opt/ed/ed" does not exist') }],
  });
  const chosen = group({ mode: 'manual', target: '/opt/ed/ed', candidates: ['/bin/vim', '/opt/ed/ed'] });
  const other = { ...chosen, registered: { '/opt/ed/ed': { priority: 50, slaves: [] } } };
  expect(diffAlternatives(own, { group: other }).changes).toEqual([{ field: 'registered', from: 'priority 50', to }]);
  const same = { ...chosen, registered: { '/opt/ed/ed': registration } };
  expect(diffAlternatives(own, { group: same }).action).toBe('none');
  expect(() => diffAlternatives(own, { group: { ...same, link: { path: '/usr/bin/ed', state: 'linked' } } })).toThrow(
    'has the link /usr/bin/ed, which is not moved to /usr/bin/editor',
  );

  // The removal restores the registration and the choice.
  const removal = (before: Parameters<typeof diffAlternativesRemoval>[0], found: LinkGroup) =>
    diffAlternativesRemoval(before, { group: found }, '/opt/ed/ed').changes.map(({ field, to }) => [field, to]);
  expect(removal({ mode: 'auto', registration: null }, same)).toEqual([
    ['registered', null],
    ['path', '/bin/vim'],
    ['mode', 'auto'],
  ]);
  expect(removal({ mode: 'auto', registration: null }, { ...same, candidates: ['/opt/ed/ed'] })).toEqual([
    ['registered', null],
  ]);
  expect(removal({ mode: 'manual', path: '/opt/ed/ed', registration: { priority: 50, slaves: [] } }, same)).toEqual([
    ['registered', 'priority 50'],
  ]);
  expect(removal({ mode: 'manual', path: '/opt/ed/ed', registration }, same)).toEqual([]);
});

test('restores a registration that was lost with its group', () => {
  const registration = { priority: 50, slaves: [] };
  const before = { mode: 'auto', registration, link: '/usr/bin/editor' } as const;
  expect(diffAlternativesRemoval(before, { group: null }, '/bin/ed').changes).toEqual([
    { field: 'registered', from: null, to: 'priority 50' },
  ]);
  expect(diffAlternativesRemoval(before, { group: null, isMissing: true }, '/bin/ed').action).toBe('none');
  expect(() => diffAlternativesRemoval(before, { group: null, foreign: ['/usr/bin/editor'] }, '/bin/ed')).toThrow(
    '/usr/bin/editor is occupied',
  );
  expect(diffAlternativesRemoval(before, { group: group(), isMissing: true }, '/bin/ed').action).toBe('none');
});

test('refuses to replace another file at the path of a link', () => {
  const resource = declared({ link: '/usr/bin/editor' });
  const foreign = ['/usr/bin/editor'];
  expect(() => diffAlternatives(resource, { group: null, foreign })).toThrow(
    /^\/usr\/bin\/editor: not a link of the group editor/,
  );
  expect(diffAlternatives(resource, { group: null })).toMatchObject({ action: 'create' });
  // If the declared choice is already in effect, nothing is replaced.
  expect(diffAlternatives(declared(), { group: manual, foreign }).changes).toEqual([]);
  expect(() => diffAlternatives(declared(), { group: group(), foreign })).toThrow('does not replace');
});

test('refuses to replace a target that it could not restore', async () => {
  const remember = (seen: LinkGroup, before: Parameters<typeof diffAlternativesRemoval>[0] | null) =>
    alternatives.remember(declared(), { group: seen }, {} as never, before, {} as Machine);
  const foreign = group({ target: '/opt/own' });
  await expect(remember(foreign, null)).rejects.toThrow('"/opt/own", which is not one of its candidates');
  expect(await remember(foreign, { mode: 'auto' })).toEqual({ mode: 'auto' });
});

test.each([
  ['a name that is an option', { name: '--config' }, 'is not the name of a link group'],
  ['a name that leaves the directory', { name: '../editor' }, 'is not the name of a link group'],
  ['a long name', { name: 'x'.repeat(241) }, 'is not the name of a link group'],
  ['a name with a line break', { name: 'editor\n' }, 'is not the name of a link group'],
  ['a path that is an option', { path: '--force' }, 'is not an absolute path'],
  ['a path with a line break', { path: '/bin/a\nb' }, 'is not an absolute path'],
  ['a link that is an option', { link: '--force' }, 'is not an absolute path of a link'],
  ['an incomplete slave link', { link: '/usr/bin/x', slaves: ['/usr/bin/y y'] }, 'is not a slave link'],
  ['a slave link with an option', { link: '/usr/bin/x', slaves: ['/usr/bin/y --force /y'] }, 'is not a slave link'],
  ['a long path', { path: `/${'x'.repeat(4095)}` }, 'is not an absolute path'],
])('refuses %s on upload and on the agent', (_what, body, message) => {
  const resource = declared(body);
  expect(() => alternatives.check(resource)).toThrow(message);
  expect(upload(resource.body)).toMatchObject({ ok: false });
});

test("accepts the names of Debian's alternatives groups", () => {
  for (const name of ['c++', 'libblas.so.3-x86_64-linux-gnu', 'x-www-browser']) {
    const resource = declared({ name });
    expect(() => alternatives.check(resource)).not.toThrow();
    expect(upload(resource.body)).toMatchObject({ ok: true });
  }
});

test('owns and watches no path for an invalid group name', () => {
  const hostile = declared({ name: '../../etc/passwd' });
  expect(alternatives.path(hostile)).toBeNull();
  expect(alternatives.watched?.(hostile)).toEqual([]);
  expect(alternatives.path(declared())).toBe('/etc/alternatives/editor');
});
