import { expect, test } from 'vitest';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';
import { fillSecrets } from './secrets.ts';

const agent = { name: 'web-1', node_id: 'a', attributes: { platform: 'linux' }, tags: {} };

/** Returns the value that an agent gets, or the first error. */
function valueFor(value: unknown): unknown {
  const parsed = parseModule(
    JSON.stringify({
      name: 'm',
      supports: [{ platform: 'linux' }],
      parameters: { port: { type: 'integer', default: 80 }, names: { type: 'list', default: ['a', 'b'] } },
      resources: [{ id: 'r', resource: { 'json-unix': { path: '/f', pointer: '/a', value } } }],
    }),
  );
  if (!parsed.ok) return parsed.faults.map(({ path, message }) => `${path} ${message}`)[0];
  const resolution = resolveDesiredSet({ modules: [parsed.module], agent });
  if (!resolution.ok) return resolution.faults[0]?.message;
  const filled = fillSecrets(JSON.parse(JSON.stringify(resolution.resources)), (name) => `the ${name}`);
  if (!filled.ok) return filled.faults[0]?.message;
  const [first] = filled.resources as unknown as [{ body: { value: unknown }; sensitive_fields: string[] }];
  const { value: found } = first.body;
  return first.sensitive_fields.includes('value') ? { secret: found } : found;
}

test.each([
  [1.5, 1.5],
  [false, false],
  ['', ''],
  [
    [1, [null, { a: true }]],
    [1, [null, { a: true }]],
  ],
  ['${{ param.port }}', 80],
  ['port ${{ param.port }}', 'port 80'],
  ['${{ param.names }}', ['a', 'b']],
  ['${{ param.names | join(",") }}', 'a,b'],
  [{ list: ['x', '${{ omit }}', { deep: '${{ param.port + 1 }}' }] }, { list: ['x', { deep: 81 }] }],
  ['${{ secrets.key }}', { secret: 'the key' }],
  [{ a: ['x', { b: 'k=${{ secrets.key }}' }] }, { secret: { a: ['x', { b: 'k=the key' }] } }],
  [null, '/resources/0/resource/json-unix requires value, unless it has ensure: absent'],
  ['${{ param.none }}', '/resources/0/resource/json-unix/value there is no parameter "none"'],
  [['${{ attr.none }}'], 'the agent reports no attribute "none"'],
])('evaluates expressions in a value of any form: %j', (value, expected) => {
  const found = valueFor(value);
  if (typeof expected === 'string' && typeof found === 'string' && expected !== found)
    expect(found).toContain(expected);
  else expect(found).toEqual(expected);
});

test('refuses a value within another declared value of the same file', () => {
  const faultsFor = (...places: [path: string, pointer: string][]): string[] => {
    const resources = places.map(([path, pointer]) => ({ resource: { 'json-unix': { path, pointer, value: 1 } } }));
    const parsed = parseModule(JSON.stringify({ name: 'm', supports: [{ platform: 'linux' }], resources }));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    const resolution = resolveDesiredSet({ modules: [parsed.module], agent });
    return resolution.ok ? [] : resolution.faults.map(({ message }) => message);
  };
  expect(faultsFor(['/f', '/a/b'], ['/f', '/a/bc'], ['/g', '/a'], ['/f', '/b/a/b'])).toEqual([]);
  const [fault = '', ...more] = faultsFor(['/f', '/a/b/c'], ['/f', '/a']);
  expect(more).toEqual([]);
  expect(fault).toContain('json-unix /f#/a/b/c in module "m"');
  expect(fault).toContain('is within the value that module "m"');
});

test('inserts a secret at the key __proto__ without changing other objects', () => {
  const value = JSON.parse('{"__proto__": {"polluted": "${{ secrets.key }}"}}');
  valueFor(value);
  expect(({} as { polluted?: string }).polluted).toBeUndefined();
});
