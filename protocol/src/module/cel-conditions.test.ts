import { describe, expect, test } from 'vitest';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

const agentOf = (attributes: Readonly<Record<string, string>>) => ({
  name: 'web-1',
  node_id: 'a',
  attributes: { platform: 'linux', ...attributes },
  tags: { role: 'web' },
});

const header = `name: m
supports: [{ platform: linux }]
parameters:
  tls: { type: boolean, default: true }
  users: { type: list, default: [a] }
`;

/** Returns the IDs of the resources, or the errors. */
function resolved(source: string, attributes: Readonly<Record<string, string>> = {}) {
  const parsed = parseModule(header + source);
  if (!parsed.ok) return parsed.faults.map(({ path, message }) => `${path} ${message}`);
  const resolution = resolveDesiredSet({ modules: [parsed.module], agent: agentOf(attributes) });
  if (!resolution.ok) return resolution.faults.map(({ message }) => message);
  return [
    ...resolution.resources.map(({ id, body }) => `${id} ${body.content}`),
    ...resolution.verify.map(({ type }) => type),
  ];
}

const file = (id: string, rest: string, content = 'x'): string =>
  `  - { id: ${id}, ${rest}, resource: { file-unix: { path: /${id}, content: '${content}' } } }\n`;

describe('a condition in CEL', () => {
  test('selects resources by facts, tags, and parameters', () => {
    const source = `resources:\n${file('a', 'when: "param.tls && attr.family == \'debian\'"')}${file('b', 'when: "tag.role in [\'db\'] || size(param.users) > 1"')}`;
    expect(resolved(source, { family: 'debian' })).toEqual(['a x']);
    expect(resolved(source, { family: 'redhat' })).toEqual([]);
  });

  test('treats a condition as false if it reads a value that the agent lacks', () => {
    expect(resolved(`resources:\n${file('a', 'when: "attr.family == \'debian\'"')}`)).toEqual([]);
    expect(resolved(`resources:\n${file('a', 'when: "!has(attr.family)"')}`)).toEqual(['a x']);
  });

  test('selects variants, templates, checks, and parameter values', () => {
    const source = `  port: { type: integer, default: 80, variants: [{ when: "int(attr.major) >= 12", value: 443 }] }
templates:
  - { id: t, when: "attr.major == '12'", content: twelve }
  - { id: t, when: "attr.major != '12'", content: other }
resources:
  - id: f
    variants:
      - { when: "int(attr.major) > 11", resource: { file-unix: { path: /f, template: t } } }
      - { when: "int(attr.major) <= 11", resource: { file-unix: { path: /f, content: old } } }
  - { id: p, resource: { file-unix: { path: /p, content: "\${{ param.port }}" } } }
verify:
  - { when: "param.port == 443", tcp: { port: 443 } }
  - { when: "param.port == 80", command: "true" }
`;
    expect(resolved(source, { major: '12' })).toEqual(['f twelve', 'p 443', 'tcp']);
    expect(resolved(source, { major: '11' })).toEqual(['f old', 'p 80', 'command']);
  });

  test.each([
    ['when', file('a', `when: "'yes'"`), 'string'],
    ['when', file('a', 'when: "1 + 1"'), 'int'],
    ['where', file('a', `for_each: "\${{ param.users }}", where: "'yes'"`), 'string'],
    ['when', file('a', `when: "size(param.users)"`), 'int'],
  ])('refuses a condition that is neither true nor false in %s: %s', (key, resource, type) => {
    expect(resolved(`resources:\n${resource}`)).toContain(
      `/resources/0/${key} the condition yields ${type}, not true or false: use a comparison, such as param.x == "y"`,
    );
  });

  test('refuses text as a condition in a template', () => {
    expect(resolved(`resources:\n${file('a', 'name: a', "${{ if 'yes' }}x${{ end }}".replaceAll("'", '"'))}`)).toEqual([
      expect.stringContaining('the condition yields string'),
    ]);
  });

  test('fails the module if a condition cannot be evaluated, or if several variants match', () => {
    expect(resolved(`resources:\n${file('a', 'when: "int(attr.rack) > 1"')}`, { rack: 'x' })[0]).toContain('int');
    const both = `resources:
  - id: f
    variants:
      - { when: "attr.cpus != '1'", resource: { file-unix: { path: /f } } }
      - { when: "attr.cpus == '2'", resource: { file-unix: { path: /f } } }
`;
    expect(resolved(both, { cpus: '2' })[0]).toContain('these variants match the agent with the same number of keys');
  });

  test.each([
    ['an unknown parameter', 'when: "param.tsl"', '/resources/0/when there is no parameter "tsl": did you mean "tls"?'],
    [
      'an unknown name',
      'when: "family == \'x\'"',
      '/resources/0/when unknown name "family": use one of agent, attr, tag, param, each, index, lookup, secrets; write $${{ for a plain ${{',
    ],
    [
      'a value that is no condition',
      'when: "size(param.users)"',
      '/resources/0/when the condition yields int, not true or false: use a comparison, such as param.x == "y"',
    ],
    [
      'a secret',
      'when: "secrets.x == \'a\'"',
      '/resources/0/when a secret cannot be the argument of a function or an operator: insert it into text as ${{ secrets.NAME }}',
    ],
    [
      'an element of a loop',
      'for_each: [1], when: "each == 1"',
      '/resources/0/when `when` is evaluated before the loop: filter its elements with `where`',
    ],
  ])('refuses %s', (_what, rest, message) => {
    expect(
      resolved(
        `resources:\n${file('a', rest, '${{ index }}').replace('index', rest.includes('each') ? 'index' : 'agent.name')}`,
      ),
    ).toContain(message);
  });

  test('refuses parameters in places where they have no values yet', () => {
    const source = '  port: { type: integer, default: 80, variants: [{ when: "param.tls", value: 443 }] }\n';
    expect(resolved(source)).toEqual([
      '/parameters/port/variants/0/when parameters have no values here: use facts and tags',
    ]);
  });
});
