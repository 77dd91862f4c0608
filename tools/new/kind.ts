import { addChange, camelCase, capital, create, insert, pascalCase, quoted, type Skeleton } from './edit.ts';

export interface KindOptions {
  /**
   * Description of one resource, such as `a file, or a symbolic link`. Used in the module language and the
   * documentation.
   */
  readonly about: string;
  /** The counterparts in Salt, Puppet, and Ansible, separated by `|`. */
  readonly like: string;
}

/**
 * Returns the skeleton of a resource kind: its schema, provider, tests, contract subject, example, and entries in
 * documentation pages.
 */
export function kindSkeleton(name: string, { about, like }: KindOptions): Skeleton {
  const camel = camelCase(name);
  const pascal = pascalCase(name);
  return {
    edits: [
      create(`protocol/src/module/kinds/${name}.ts`, schemaOf(name, camel, about)),
      insert(
        'protocol/src/module/kinds.ts',
        ['import { languagePackageKinds, packageKinds }', `import { ${camel}Kind } from './kinds/${name}.ts';\n`],
        ['  ...systemKinds,\n', `  ...${camel}Kind,\n`],
      ),
      create(`agent/src/resources/${name}/${name}.ts`, providerOf(name, camel, pascal)),
      create(`agent/src/resources/${name}/${name}.test.ts`, testOf(name, camel)),
      insert(
        'agent/src/resources/registry.ts',
        ['import { packageApt }', `import { ${camel} } from './${name}/${name}.ts';\n`],
        ['  ].map((provider)', `    ${camel},\n`],
      ),
      create(`e2e/hosts/subjects/${name}.ts`, subjectsOf(name, camel)),
      insert(
        'e2e/hosts/subjects/index.ts',
        ['import { kindOf, type Subject }', `import { ${camel}Subjects } from './${name}.ts';\n`],
        ['];\n', `  ...${camel}Subjects,\n`],
      ),
      insert('README.md', ['; and `script` for everything else', `, \`${name}\``]),
      insert('docs/coming-from.md', [
        '| `check_cmd`, `http.wait_for_successful_query` |',
        `| ${like.split('|').map(counterpart).join(' | ')} | \`${name}\` | \`${name}\` |\n`,
      ]),
      addChange(
        'Modules and the command line',
        `- The kind \`${name}\` manages ${about}. Update agents before modules use it.`,
      ),
    ],
    next: [
      `protocol/src/module/kinds/${name}.ts: the fields, and a useful example with all of them except \`ensure\``,
      `agent/src/resources/${name}/${name}.ts: repeat the fields, then write each method that throws "fill in"`,
      `agent/src/resources/${name}/${name}.test.ts: replace each "fill in"`,
      `e2e/hosts/subjects/${name}.ts: declare subjects, then npm run test:e2e -- e2e/providers -t ${name}`,
      'node tools/checks/docs.ts --write: regenerates docs/module-kinds.md',
      `docs/coming-from.md: move the new row to its section, and add a resource with the id ${name} to a module there`,
      'docs/modules.md: the state that the kind preserves, the fields in drift, and the state that removal restores',
    ],
  };
}

const counterpart = (names: string): string =>
  names
    .split(',')
    .map((text) => text.trim())
    .map((text) => (text === '' ? '' : `\`${text}\``))
    .join(', ');

const schemaOf = (name: string, camel: string, about: string): string => `import { formatted } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';

export const ${camel}Kind = {
  '${name}': defineKind({
    description: ${quoted(capital(about))},
    platforms: ['linux'],
    example: 'name: example',
    required: { name: formatted('fill in: the field that identifies it', format.plainName) },
    optional: { ensure },
  }),
};
`;

const providerOf = (
  name: string,
  camel: string,
  pascal: string,
): string => `import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { nothing } from '../provider/provider.ts';

export interface Seen${pascal} {
  isPresent: boolean;
}

/** State before the agent's first change. */
export type ${pascal}Before = { was: 'absent' | 'present' };

const fillIn = (method: string): never => {
  throw new HostFailure(\`fill in: \${method} of ${name}\`);
};

export const ${camel} = defineProvider<'${name}', Seen${pascal}, ${pascal}Before>({
  type: '${name}',
  fields: { name: 'text', ensure: 'text?' },

  /** Must not change the machine. */
  observe: () => fillIn('observe'),

  diff({ body }, { isPresent }) {
    const [from, to] = [isPresent ? 'present' : 'absent', body.ensure ?? 'present'];
    if (from === to) return nothing();
    return { action: to === 'absent' ? 'remove' : 'create', changes: [{ field: 'ensure', from, to }], diff: null };
  },

  remember: async (_resource, { isPresent }, _difference, before) => before ?? { was: isPresent ? 'present' : 'absent' },
  apply: async () => fillIn('apply'),
  observeForRemoval: () => fillIn('observeForRemoval'),

  diffRemoval(_resource, { was }, { isPresent }) {
    const from = isPresent ? 'present' : 'absent';
    if (from === was) return nothing('already in its original state');
    return { action: 'remove', changes: [{ field: 'ensure', from, to: was }], diff: null };
  },

  remove: async () => fillIn('remove'),
});
`;

const testOf = (
  name: string,
  camel: string,
): string => `import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { ${camel} } from './${name}.ts';
import type { Circumstances, Machine } from '../provider/provider.ts';

const declared = { type: '${name}', identity: 'example', body: { name: 'example' } } as ResolvedResource<'${name}'>;

test('observes the current state of the machine', async () => {
  expect(await ${camel}.observe(declared, {} as Circumstances, {} as Machine)).toEqual({ isPresent: false });
});

test('reports each field that differs', () => {
  expect(${camel}.diff(declared, { isPresent: false }, {} as Circumstances).action).toBe('create');
  expect.fail('fill in: a case for each field of ${name}');
});

test('refuses a body that cannot be applied', () => {
  expect.fail('fill in: a body that check refuses, and its message');
});
`;

const subjectsOf = (name: string, camel: string): string => `import type { Subject } from './subject.ts';

/** The contract tests run with each subject. Choose subjects that differ in the original state of the machine. */
export const ${camel}Subjects: readonly Subject[] = [
  {
    name: '${name}',
    desired: { '${name}': { name: 'example' } },
    changed: { '${name}': { name: 'example', ensure: 'absent' } },
    tamper: 'echo "fill in: change it by hand" >&2; exit 1',
    moved: ['ensure'],
  },
];
`;
