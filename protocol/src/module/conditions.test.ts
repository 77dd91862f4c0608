import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clauseSchema, readConditions, whenSchema } from './conditions/declared.ts';
import { impossibleVersion } from './conditions/distro-versions.ts';
import { type AgentFacts, described, implies, matches, together } from './conditions.ts';
import type { Conditions, ValueSet } from './document.ts';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

const versions = ['9', '9.4', '9.04', '10', '12~rc1', '12', '12.0', '13', 'x'];
const keys = ['version', 'tag.a'];

const some = fc.uniqueArray(fc.constantFrom(...versions), { minLength: 1, maxLength: 4 });
const bound = fc.option(fc.constantFrom(...versions), { nil: undefined });
const set: fc.Arbitrary<ValueSet> = fc
  .tuple(fc.option(some, { nil: undefined, freq: 1 }), fc.option(some, { nil: undefined, freq: 1 }), bound, bound)
  .map(([values, notIn, from, below]) => ({
    ...(values === undefined ? {} : { in: values }),
    ...(notIn === undefined ? {} : { notIn }),
    ...(from === undefined ? {} : { from }),
    ...(below === undefined ? {} : { below }),
  }))
  .filter((given) => Object.keys(given).length > 0);
const conditions: fc.Arbitrary<Conditions> = fc
  .tuple(fc.option(set, { nil: undefined }), fc.option(set, { nil: undefined }))
  .map((sets) => Object.fromEntries(sets.flatMap((one, index) => (one === undefined ? [] : [[keys[index], one]]))));

const agent = (version?: string, tag?: string): AgentFacts => ({
  name: 'a',
  node_id: '1',
  attributes: version === undefined ? {} : { version },
  tags: tag === undefined ? {} : { a: tag },
});
const values = [undefined, ...versions, '11'];
const agents = values.flatMap((version) => values.map((tag) => agent(version, tag)));

describe('conditions', () => {
  test('combines conditions so that exactly the agents that satisfy all of them match', () => {
    fc.assert(
      fc.property(conditions, conditions, (one, other) => {
        const both = together(one, other);
        for (const candidate of agents)
          expect(both !== undefined && matches(both, candidate)).toBe(
            matches(one, candidate) && matches(other, candidate),
          );
      }),
      { numRuns: 500 },
    );
  });

  test('reports an implication only if it holds for every agent', () => {
    fc.assert(
      fc.property(conditions, conditions, (narrow, wide) => {
        expect(implies(narrow, narrow)).toBe(true);
        const both = together(narrow, wide);
        if (both !== undefined) expect(implies(both, narrow)).toBe(true);
        if (!implies(narrow, wide)) return;
        for (const candidate of agents) if (matches(narrow, candidate)) expect(matches(wide, candidate)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('recognizes that a range excludes only values outside it', () => {
    const range = readConditions({ version: { from: '12', below: '13' } });
    expect(implies(range, readConditions({ version: { not: '13' } }))).toBe(true);
    expect(implies(range, readConditions({ version: { not: '12.1' } }))).toBe(false);
    expect(implies(range, readConditions({ version: { from: '9' } }))).toBe(true);
  });

  test.each<[unknown, Record<string, string>, boolean]>([
    [{ distro: ['debian', 'ubuntu'] }, { distro: 'ubuntu' }, true],
    [{ distro: ['debian', 'ubuntu'] }, { distro: 'fedora' }, false],
    [{ distro: { not: 'debian' } }, { distro: 'fedora' }, true],
    [{ distro: { not: ['debian', 'ubuntu'] } }, { distro: 'ubuntu' }, false],
    [{ distro: { not: 'debian' } }, {}, true],
    [{ distro: ['debian'] }, {}, false],
    [{ version: { from: '12', below: '13' } }, { version: '12' }, true],
    [{ version: { from: '12', below: '13' } }, { version: '13' }, false],
    [{ version: { from: '9' } }, { version: '10.1' }, true],
    [{ version: { below: '9' } }, {}, false],
    [{ version: { from: '12', not: '12.1' } }, { version: '12.1' }, false],
    [{ 'attr.rack.row': '4' }, { 'rack.row': '4' }, true],
    [{ container: true }, { container: 'true' }, true],
  ])('evaluates the conditions %j for the attributes %j', (when, attributes, expected) => {
    expect(whenSchema.safeParse(when).success).toBe(true);
    expect(matches(readConditions(when), { ...agent(), attributes })).toBe(expected);
  });

  test('formats conditions as a selector', () => {
    const text = (value: unknown) => described(readConditions(value));
    expect(text({ platform: 'linux', distro: ['debian', 'ubuntu'] })).toBe('platform=linux distro in (debian, ubuntu)');
    expect(text({ version: { from: '12', below: '13', not: ['12.1', '12.2'] }, arch: { not: 'armv7' } })).toBe(
      'version notin (12.1, 12.2) version>=12 version<13 arch!=armv7',
    );
    expect(text({})).toBe('any agent');
  });

  test('treats attr.distro and distro as the same fact', () => {
    expect(together(readConditions({ 'attr.distro': 'debian' }), readConditions({ distro: 'fedora' }))).toBeUndefined();
  });

  test('accepts parameters in `when` and refuses them in a clause of `supports`', () => {
    expect(whenSchema.safeParse({ 'param.tls': true }).success).toBe(true);
    expect(clauseSchema.safeParse({ 'param.tls': true }).success).toBe(false);
  });

  test.each([
    [{ distro: 'rocky', version: '9' }, /no release of rocky has the version "9".*9\.4.*write major: "9"/],
    [{ distro: ['rocky', 'almalinux'], version: ['8', '9'] }, /write major: "8"/],
    [{ distro: 'debian', version: '12.5' }, /write major: "12"/],
    [{ distro: 'alpine', version: '3.19' }, /write version: \{ from: "3\.19", below: "3\.20" \}/],
    [{ distro: 'ubuntu', version: 'noble' }, /a version is such as "22\.04"$/],
  ])('explains that no release has the version in %j', (when, message) => {
    expect(impossibleVersion(readConditions(when))).toMatch(message);
  });

  test.each([
    { distro: 'rocky', version: '9.4' },
    { distro: 'rocky', version: { from: '9', below: '10' } },
    { distro: ['rocky', 'debian'], version: '9' },
    { distro: 'gentoo', version: '9' },
    { version: '9' },
  ])('accepts the version condition in %j', (when) => {
    expect(impossibleVersion(readConditions(when))).toBeUndefined();
  });
});

const supports = 'name: m\nsupports: [{ platform: linux }]\n';

const findings = (source: string) => {
  const parsed = parseModule(supports + source);
  const texts = (faults: readonly { path: string; message: string }[]) =>
    faults.map(({ path, message }) => `${path} ${message}`);
  return { faults: parsed.ok ? [] : texts(parsed.faults), warnings: texts(parsed.warnings) };
};

const file = (content = 'a') => `resource: { file-unix: { path: /f, content: "${content}" } }`;

describe('conditions of modules', () => {
  test.each([
    ['when: { distro: [] }', '/resources/0/when/distro must contain a value'],
    ['when: { version: 12 }', '/resources/0/when/version must be text: write it in quotes, "12"'],
    ['when: { version: { from: 12 } }', '/resources/0/when/version/from must be text: write it in quotes, "12"'],
    [
      'when: { version: { from: "13", below: "12" } }',
      '/resources/0/when/version empty version range: `from` (13) must be lower than `below` (12)',
    ],
    ['when: { version: {} }', '/resources/0/when/version needs not, from, or below'],
    [
      'when: { version: { above: "12" } }',
      '/resources/0/when/version/above unknown field "above": use one of not, from, below',
    ],
    ['when: { platform: [linux, beos] }', '/resources/0/when/platform/1 must be one of linux, windows, macos'],
    ['when: { platform: { not: beos } }', '/resources/0/when/platform/not must be one of linux, windows, macos'],
    ['when: { param.tsl: true }', '/resources/0/when/param.tsl there is no parameter "tsl": did you mean "tls"?'],
    [
      'when: { param.users: a }',
      '/resources/0/when/param.users the parameter "users" is a list, which a condition cannot compare: use a parameter of another type',
    ],
  ])('refuses %s', (when, fault) => {
    const parameters = 'parameters: { tls: { type: boolean, default: true }, users: { type: list, default: [] } }\n';
    expect(findings(`${parameters}resources: [{ ${when}, ${file()} }]\n`).faults).toEqual([fault]);
  });

  test('refuses variants that match the same agents with the same keys', () => {
    const variants = (one: string, other: string, more = '') =>
      findings(`resources: [{ variants: [{ when: ${one}, ${file()} }, { when: ${other}, ${file()} }${more}] }]`).faults;
    expect(variants('{ distro: [debian, ubuntu] }', '{ distro: [ubuntu, fedora] }')).toEqual([
      '/resources/0/variants/1 ties with variant 1: both match distro=ubuntu',
    ]);
    expect(variants('{ version: { from: "12" } }', '{ version: { below: "13" } }')).toEqual([
      '/resources/0/variants/1 ties with variant 1: both match version>=12 version<13',
    ]);
    expect(variants('{ version: { from: "13" } }', '{ version: { below: "13" } }')).toEqual([]);
    expect(variants('{ distro: debian }', '{ distro: { not: debian } }')).toEqual([]);
    const winner = `, { when: { distro: ubuntu, arch: x86_64 }, ${file()} }`;
    expect(variants('{ distro: [debian, ubuntu] }', '{ distro: [ubuntu, fedora] }', winner)).toEqual([]);
  });

  test('finds identities that are declared twice under overlapping conditions', () => {
    const two = (one: string, other: string) =>
      findings(`resources: [{ when: ${one}, ${file()} }, { when: ${other}, ${file('b')} }]`).faults.length;
    expect(two('{ distro: [debian, ubuntu] }', '{ distro: { not: [debian, ubuntu] } }')).toBe(0);
    expect(two('{ distro: [debian, ubuntu] }', '{ distro: { not: debian } }')).toBe(1);
    expect(two('{ version: { from: "12" } }', '{ version: { below: "12" } }')).toBe(0);
  });

  test('warns about conditions that are never true', () => {
    expect(
      findings(`resources: [{ when: { distro: debian }, variants: [{ when: { distro: fedora } }, { ${file()} }] }]`)
        .warnings,
    ).toEqual([
      '/resources/0/variants/0/when can never be true together with the `when` of the resource (distro=debian): change one of them',
    ]);
    expect(findings(`resources: [{ when: { distro: rocky, version: "9" }, ${file()} }]`).warnings).toEqual([
      '/resources/0/when no release of rocky has the version "9": a version is such as "9.4"; write major: "9"',
    ]);
  });
});

describe('resolution with conditions', () => {
  const facts: AgentFacts = {
    name: 'web-1',
    node_id: '1',
    attributes: { platform: 'linux', distro: 'debian', version: '12' },
    tags: { role: 'web' },
  };
  const resolve = (source: string, parameters = {}) => {
    const parsed = parseModule(supports + source);
    if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));
    return resolveDesiredSet({ modules: [parsed.module], agent: facts, parameters: { m: parameters } });
  };
  const contents = (source: string, parameters = {}) => {
    const resolution = resolve(source, parameters);
    return resolution.ok
      ? resolution.resources.map(({ body }) => body.content)
      : resolution.faults.map(({ path, message }) => `${path} ${message}`);
  };

  test('leaves the machine unchanged for a variant without a resource', () => {
    const source = `resources: [{ variants: [{ when: { distro: debian } }, { ${file()} }] }]`;
    expect(contents(source)).toEqual([]);
    expect(contents(source.replace('debian', 'fedora'))).toEqual(['a']);
  });

  test('chooses a resource by the value of a parameter', () => {
    const source = `parameters: { tls: { type: boolean, default: false }, n: { type: integer, default: 3 } }
resources: [{ when: { param.tls: true, param.n: 3 }, ${file()} }]`;
    expect(contents(source)).toEqual([]);
    expect(contents(source, { tls: true })).toEqual(['a']);
    expect(contents(source, { tls: true, n: 4 })).toEqual([]);
  });

  test('chooses among templates with the same ID, and reports an error if none matches', () => {
    const source = (when: string) => `templates:
  - { id: t, when: ${when}, content: specific }
  - { id: t, when: { distro: fedora }, content: other }
resources: [{ resource: { file-unix: { path: /f, template: t } } }]`;
    expect(contents(source('{ distro: debian }'))).toEqual(['specific']);
    expect(contents(source('{ distro: alpine }'))).toEqual([
      '/modules/m/resources/0/resource/file-unix/template module "m": no template "t" matches the agent; they are for distro=alpine | distro=fedora',
    ]);
  });

  test('runs only verifications that apply to the agent', () => {
    const resolution = resolve(
      'verify: [{ when: { distro: fedora }, command: "false" }, { when: { tag.role: [web, db] }, tcp: { port: 22 } }]',
    );
    expect(resolution).toMatchObject({ ok: true, verify: [{ type: 'tcp' }] });
  });
});

describe('the checks of a module', () => {
  const faultsOf = (rest: string): string[] => {
    const parsed = parseModule(`name: m\nsupports: [{ distro: [debian, fedora] }]\n${rest}`);
    return parsed.ok ? [] : parsed.faults.map(({ message }) => message);
  };
  const withWhen = (when: string) => faultsOf(`resources: [{ when: ${when}, resource: { file-unix: { path: /a } } }]`);

  test('refuses a condition that contains only an extension key, which would match every agent', () =>
    expect(withWhen('{ distro: { x-note: a } }')).toEqual(['needs not, from, or below']));

  test('refuses two conditions on the same fact', () =>
    expect(withWhen('{ distro: debian, attr.distro: fedora }')).toEqual([
      'is the same fact as distro: keep one of them',
    ]));

  test('allows templates with the same ID if no supported agent matches two of them', () => {
    const templates = (other: string) => `templates:
  - { id: t, when: { distro: { not: debian } }, content: a }
  - { id: t, when: { distro: { not: ${other} } }, content: b }
resources: [{ resource: { file-unix: { path: /a, template: t } } }]`;
    expect(faultsOf(templates('fedora'))).toEqual([]);
    expect(faultsOf(templates('alpine'))).toEqual([
      'the template id "t" is used twice: change a `when`, so that no agent matches two of them',
    ]);
  });

  test.each(['__proto__', 'constructor', 'toString'])('refuses the parameter type %s', (type) =>
    expect(faultsOf(`parameters: { p: { type: ${type}, default: 1 } }`)).toEqual([expect.stringContaining('must be ')]),
  );

  test('reports at most 20 errors in a value', () => {
    const keys = Array.from({ length: 100 }, (_, index) => `k${index}: 1`).join(', ');
    const parameter = `{ type: map, additionalProperties: false, properties: { a: {} }, default: { ${keys} } }`;
    expect(faultsOf(`parameters: { p: ${parameter} }`)).toHaveLength(20);
  });
});
