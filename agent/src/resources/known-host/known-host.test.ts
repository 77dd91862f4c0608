import { parseModule, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Circumstances, Difference, Machine } from '../provider/provider.ts';
import { joinLines, positionOf, splitLines, type TextLine } from '../text-edit/lines.ts';
import { declaredLines, type KnownHostBefore, knownHost, restoredLines, type SeenKnownHost } from './known-host.ts';

/** Returns a public key as base64: its type and 32 bytes, each prefixed with its length. */
function keyOf(byte: number, type = 'ssh-ed25519'): string {
  const parts = [Buffer.from(type), Buffer.alloc(32, byte)];
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, part];
    }),
  ).toString('base64');
}

type Body = ResourceBodies['known-host'];
const key = keyOf(1);
const body = (fields: Partial<Body> = {}): Body => ({ name: 'web', key_type: 'ssh-ed25519', key, ...fields });
const declared = (fields: Partial<Body> = {}): ResolvedResource<'known-host'> => ({
  key: 'known-host:web/ssh-ed25519',
  module: 'site',
  id: null,
  name: null,
  type: 'known-host',
  identity: 'web/ssh-ed25519',
  body: body(fields),
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});
const linesOf = (text: string): TextLine[] => splitLines(Buffer.from(text, 'latin1'));
const textOf = (lines: readonly TextLine[]): string => joinLines(lines).toString('latin1');
const edited = (text: string, fields: Partial<Body> = {}): string => textOf(declaredLines(body(fields), linesOf(text)));

/** Returns an observation in which the lines with these indexes belong to the host. */
function seen(text: string, own: readonly number[], fields: Partial<SeenKnownHost> = {}): SeenKnownHost {
  const lines = linesOf(text);
  return {
    type: 'file',
    kind: null,
    ownership: null,
    lines: own.map((index) => ({ ...(lines[index] as TextLine), ...positionOf(lines, index, 1) })),
    isEmpty: text === '',
    hasDirectory: true,
    isOurs: false,
    contradiction: null,
    ...fields,
  };
}
const apply = { purpose: 'apply', willBeThere: () => false } as unknown as Circumstances;
const drift = { ...apply, purpose: 'drift' } as const;
const fieldsOf = ({ changes }: Difference) => changes.map(({ field, from, to }) => [field, from, to]);
const remember = (found: SeenKnownHost, before: KnownHostBefore | null = null) =>
  knownHost.remember(declared(), found, {} as Difference, before, {} as Machine);

describe('the file', () => {
  test('adds a missing line at the end, and adds no final line break to a file without one', () => {
    expect(edited('')).toBe(`web ssh-ed25519 ${key}\n`);
    expect(edited('# a\n', { aliases: ['10.0.0.1', 'WEB', 'w'] })).toBe(`# a\nweb,10.0.0.1,w ssh-ed25519 ${key}\n`);
    expect(edited('# a')).toBe(`# a\nweb ssh-ed25519 ${key}`);
  });

  test('replaces a changed key in its line, and keeps its comment and undeclared aliases', () => {
    const old = keyOf(2);
    expect(edited(`a ssh-rsa x\r\nWeb,w\tssh-ed25519 ${old} by hand\r\nb ssh-rsa y\n`)).toBe(
      `a ssh-rsa x\r\nWeb,w ssh-ed25519 ${key} by hand\r\nb ssh-rsa y\n`,
    );
    expect(edited(`web,w ssh-ed25519 ${old}\n`, { aliases: [] })).toBe(`web ssh-ed25519 ${key}\n`);
  });

  test('leaves one line for the host, and none if it is declared absent', () => {
    const text = `web ssh-ed25519 ${keyOf(2)}\nweb ssh-rsa x\nweb ssh-ed25519 ${keyOf(3)}\n`;
    expect(edited(text)).toBe(`web ssh-ed25519 ${key}\nweb ssh-rsa x\n`);
    expect(edited(text, { ensure: 'absent' })).toBe('web ssh-rsa x\n');
  });

  test.each([
    ['a comment', `# web ssh-ed25519 ${keyOf(2)}`],
    ['a hashed name', `|1|c2FsdA==|aGFzaA== ssh-ed25519 ${key}`],
    ['a marker', `@revoked web ssh-ed25519 ${key}`],
    ['another type of key', `web ssh-rsa ${key}`],
    ['another first name', `a,web ssh-ed25519 ${key}`],
    ['another port', `[web]:2222 ssh-ed25519 ${key}`],
    ['no key', 'web ssh-ed25519'],
  ])('leaves a line with %s unchanged', (_what, line) => {
    expect(edited(`${line}\n`)).toBe(`${line}\nweb ssh-ed25519 ${key}\n`);
    expect(edited(`${line}\n`, { ensure: 'absent' })).toBe(`${line}\n`);
  });

  test('leaves a line unchanged if it differs only in spaces and in the order and case of its names', () => {
    const text = `WEB,b,a   ssh-ed25519\t${key}  x \n`;
    expect(edited(text, { aliases: ['a', 'B'] })).toBe(text);
  });
});

test('restores any file byte for byte after an apply', async () => {
  const lines = fc.constantFrom(
    '',
    '# note \xff',
    'a,web ssh-ed25519 x',
    'db ssh-rsa y',
    `web ssh-ed25519 ${key}`,
    `web,w  ssh-ed25519 ${keyOf(2)} c`,
    `Web ssh-ed25519 ${keyOf(3)}`,
  );
  const files = fc
    .tuple(fc.array(fc.tuple(lines, fc.constantFrom('\n', '\r\n')), { maxLength: 7 }), fc.boolean())
    .map(([all, isWhole]) =>
      all
        .flat()
        .join('')
        .replace(isWhole ? '' : /\r?\n$/, ''),
    );
  const fields = fc.constantFrom<Partial<Body>>({}, { aliases: ['w'] }, { aliases: [] }, { ensure: 'absent' });
  await fc.assert(
    fc.asyncProperty(files, fields, async (text, declaration) => {
      const before = linesOf(text);
      const own = before.flatMap(({ text: line }, index) => (/^web\b.* ssh-ed25519/i.test(line) ? [index] : []));
      const record = await remember(seen(text, own));
      const after = declaredLines(body(declaration), before);
      expect(declaredLines(body(declaration), after)).toEqual(after);
      expect(textOf(restoredLines(body(declaration), record, after))).toBe(text);
    }),
  );
});

describe('the difference', () => {
  const text = `web,w ssh-ed25519 ${keyOf(2)}\n`;

  test('reports each field that differs', () => {
    expect(knownHost.diff(declared({ aliases: ['a'] }), seen('', []), apply)).toMatchObject({ action: 'create' });
    expect(fieldsOf(knownHost.diff(declared({ aliases: ['a'] }), seen('', []), apply))).toEqual([
      ['ensure', 'absent', 'present'],
      ['aliases', null, 'a'],
      ['key', null, key],
    ]);
    expect(knownHost.diff(declared(), seen(text, [0]), apply).action).toBe('update');
    expect(fieldsOf(knownHost.diff(declared(), seen(text, [0]), apply))).toEqual([['key', keyOf(2), key]]);
    expect(fieldsOf(knownHost.diff(declared({ key: keyOf(2), aliases: [] }), seen(text, [0]), apply))).toEqual([
      ['aliases', 'w', null],
    ]);
    const twice = `web ssh-ed25519 ${key}\n${text}`;
    expect(fieldsOf(knownHost.diff(declared(), seen(twice, [0, 1]), drift))).toEqual([
      ['key', `${key}, ${keyOf(2)}`, key],
      ['lines', '2', '1'],
    ]);
    expect(knownHost.diff(declared({ key: keyOf(2), aliases: ['W'] }), seen(text, [0]), apply).action).toBe('none');
  });

  test('removes a line that is declared absent', () => {
    const absent = declared({ ensure: 'absent' });
    expect(knownHost.diff(absent, seen(text, [0]), apply)).toMatchObject({ action: 'remove' });
    expect(knownHost.diff(absent, seen('', []), apply).action).toBe('none');
  });

  test('warns about a line for another host that also lists this host with a different key', () => {
    const found = seen(`web ssh-ed25519 ${key}\n`, [0], { contradiction: 'a,web' });
    expect(knownHost.diff(declared(), found, apply)).toMatchObject({
      action: 'none',
      message: expect.stringContaining('ssh also accepts another ssh-ed25519 key for web, from the line of a,web'),
    });
  });

  test('waits for the directory of a missing file', () => {
    const missing = seen('', [], { type: 'absent', hasDirectory: false });
    expect(knownHost.diff(declared(), missing, apply).awaits).toEqual([
      { kind: 'programs', message: expect.stringContaining('there is no directory /etc/ssh') },
    ]);
    expect(knownHost.diff(declared(), missing, { ...apply, willBeThere: () => true }).awaits).toBeUndefined();
    expect(knownHost.diff(declared(), missing, drift).awaits).toBeUndefined();
  });

  test('refuses a link in place of the file, and reports it as drift', () => {
    const link = seen('', [], { type: 'symlink', kind: 'a symbolic link to /x' });
    expect(() => knownHost.diff(declared(), link, apply)).toThrow('/etc/ssh/ssh_known_hosts is a symbolic link to /x');
    expect(fieldsOf(knownHost.diff(declared(), link, drift))).toEqual([['type', 'symlink', 'file']]);
  });
});

test('deletes the line on removal, and the empty file if the agent created the file', async () => {
  const text = `web ssh-ed25519 ${key}\n`;
  const made = await remember(seen('', [], { isOurs: true }));
  expect(made).toEqual({ was: 'absent', made: true });
  expect(await remember(seen(text, [0]), made)).toBe(made);
  const removal = (before: KnownHostBefore, found: SeenKnownHost) =>
    knownHost.diffRemoval(declared(), before, found, apply, {} as Machine['copies']);
  expect(fieldsOf(removal(made, seen(text, [0])))).toEqual([
    ['ensure', 'present', 'absent'],
    ['key', key, null],
  ]);
  expect(removal(made, seen('', [])).message).toContain('which is empty');
  expect(removal({ was: 'absent', made: false }, seen('', [])).action).toBe('none');
  const original = await remember(seen(`web ssh-ed25519 ${keyOf(2)} c\n`, [0]));
  expect(removal(original, seen(text, [0]))).toMatchObject({
    action: 'remove',
    changes: [
      { field: 'key', from: key, to: keyOf(2) },
      { field: 'comment', from: null, to: 'c' },
    ],
  });
  expect(removal(original, seen(`web ssh-ed25519 ${keyOf(2)} c\n`, [0])).action).toBe('none');
});

const upload = (fields: Body) =>
  parseModule(
    JSON.stringify({
      name: 'site',
      supports: [{ platform: 'linux' }],
      resources: [{ id: 'it', resource: { 'known-host': fields } }],
    }),
  );

test.each([
  ['a second name', { name: 'web,db' }, 'must be a host name'],
  ['a pattern', { name: '*.example.org' }, 'must be a host name'],
  ['a marker', { name: '@revoked' }, 'must be a host name'],
  ['a name with a line break', { name: 'web\nall' }, 'must be a host name'],
  ['an alias with a space', { aliases: ['a b'] }, 'must be a host name'],
  ['a key with its type', { key: `ssh-ed25519 ${key}` }, 'base64 text of an SSH public key'],
  ['a key that was cut', { key: key.slice(0, -4) }, 'base64 text of an SSH public key'],
  ['text that is not a key', { key: 'AAAA' }, 'base64 text of an SSH public key'],
  [
    'a key with bits after its end',
    { key: `${keyOf(0, 'ssh-rsa').slice(0, -2)}B=` },
    'base64 text of an SSH public key',
  ],
] as [string, Partial<Body>, string][])(
  'refuses %s in the agent and when a module is uploaded',
  (_what, fields, message) => {
    expect(() => knownHost.check(declared(fields))).toThrow(message);
    const uploaded = upload(body(fields));
    expect(uploaded.ok ? [] : uploaded.faults.map((fault) => fault.message)).toEqual([
      expect.stringContaining(message),
    ]);
  },
);

test('refuses the port 22, because ssh omits the default port when it looks up a host', () => {
  expect(upload(body({ name: '[web]:22' }))).toMatchObject({
    faults: [{ message: expect.stringContaining('must be web') }],
  });
  expect(upload(body({ name: '[web]:70000' })).ok).toBe(false);
});

test('refuses a key whose type differs from the declared one', () => {
  expect(() => knownHost.check(declared({ key: keyOf(1, 'ssh-rsa') }))).toThrow('the key is of type "ssh-rsa"');
});

test.each(['web-1.example.org', '192.0.2.1', '2001:db8::1', 'fe80::1%eth0', '[::1]:2222', '[web]:2222'])(
  'accepts the name %s',
  (name) => {
    expect(() => knownHost.check(declared({ name }))).not.toThrow();
    expect(upload(body({ name })).ok).toBe(true);
  },
);
