import { addChange, camelCase, capital, create, type Edit, insert, pascalCase, quoted, type Skeleton } from './edit.ts';
import { consoleEdits, consoleTestEdits, menuEdits } from './noun-console.ts';
import type { Names, NounOptions } from './noun-names.ts';
import { orchestratorEdits, storeEdits } from './noun-orchestrator.ts';
import { writeEdits } from './noun-writes.ts';

/**
 * Returns the skeleton of a noun: listing objects and reading one by name, in every layer from the database to the
 * console.
 * @param name plural
 */
export function nounSkeleton(root: string, name: string, options: NounOptions): Skeleton {
  const words = name.replaceAll('-', ' ');
  const oneName = name.slice(0, -1);
  const names: Names = {
    ...options,
    ...{ name, oneName, words, oneWords: words.slice(0, -1), title: capital(words) },
    ...{ snake: words.replaceAll(' ', '_'), oneSnake: oneName.replaceAll('-', '_') },
    ...{ camel: camelCase(name), pascal: pascalCase(name), oneCamel: camelCase(oneName), one: pascalCase(oneName) },
    handlers: `${camelCase(oneName)}Handlers${options.table ? '(context)' : ''}`,
  };
  return {
    edits: [
      ...checkEdits(names),
      ...protocolEdits(names),
      ...(options.table ? storeEdits(root, names) : []),
      ...orchestratorEdits(names),
      ...cliEdits(names),
      ...consoleEdits(names),
      ...menuEdits(root, names),
      ...consoleTestEdits(names),
      glossaryEdit(names),
      addChange(
        'Modules and the command line',
        `- \`muster ${name}\`, the page ${names.title} of the console, and \`/api/v1/${name}\` ${options.writable ? 'list, show, create, and remove' : 'list and show'} ${options.about}.`,
      ),
      ...(options.writable ? writeEdits(names) : []),
    ],
    next: [
      `protocol/src/http/${name}.ts: fields, further routes, their errors (protocol/src/errors.ts)`,
      ...(options.writable
        ? []
        : [
            'protocol/src/http/definition/event-types.ts: an event for each change; console/src/api/live/outdated-keys.ts: the responses that the change makes outdated',
          ]),
      `docs/glossary.md: check the definition of the term, then run: node tools/checks/docs.ts --write; node tools/docs/write-openapi.ts`,
      `orchestrator/src/domain/${name}/${name}.ts: the rules; store: an index for each query (indices.test.ts)`,
      `cli/src/verbs/${name}/${name}.ts: columns, further verbs`,
      `console/src/pages/${name}: the pages; console/src/app/navigation.ts: its icon and its position in the menu`,
      'tools/checks/api-contract.ts: the operations and fields that clients may rely on',
    ],
  };
}

const checkEdits = ({ name, table }: Names): Edit[] => [
  ...(table
    ? []
    : [insert('tools/checks/nouns.ts', ['  kinds: { [queries]:', `  '${name}': { [queries]: 'has no table' },\n`])]),
  insert('tools/checks/api-contract.ts', [
    'GET /settings admin > 200',
    `GET /${name} operator > 200 name\nGET /${name}/{name} operator > 200 name ! 404\n`,
  ]),
];

const protocolEdits = (names: Names): Edit[] => [
  create(`protocol/src/http/${names.name}.ts`, routeText(names)),
  insert(
    'protocol/src/http/index.ts',
    ['import type { Route }', `import * as ${names.camel} from './${names.name}.ts';\n`],
    ["export * from './discovery.ts';", `export * from './${names.name}.ts';\n`],
    ['].flatMap((noun)', `  ${names.camel},\n`],
  ),
  insert('protocol/src/http/definition/tag-descriptions.ts', [
    "  Settings: '",
    `  '${names.title}': ${quoted(`${capital(names.about)}.`)},\n`,
  ]),
  insert('protocol/src/errors.ts', [
    '  agent_offline: kind(',
    `  ${names.oneSnake}_not_found: kind(404, false, 'No such ${names.oneWords}', 'List the ${names.words} with \`muster ${names.name} list\`.'),\n`,
  ]),
];

const routeText = ({ name, oneCamel, pascal, one, title, words, oneWords, example, table, oneSnake }: Names) => `
import { z } from 'zod';
import { nameParams, pageQuery${table ? ', unixSeconds' : ''} } from './definition/fields.ts';
import { route } from './definition/route.ts';

export const ${oneCamel}Schema = z
  .strictObject({ ${table ? 'name: z.string(), created_at: unixSeconds, created_by: z.string()' : 'name: z.string()'} })
  .meta({ id: '${one}' });
export type ${one} = z.infer<typeof ${oneCamel}Schema>;

const example: ${one} = {
  name: '${example}',
  ${table ? "created_at: 1795000000, created_by: '21fe31dfa154a261626bf854046fd227'," : ''}
};

export const list${pascal} = route({
  id: 'list${pascal}',
  method: 'GET',
  path: '/${name}',
  tag: '${title}',
  summary: 'List ${words}, by name',
  access: 'operator',
  query: z.strictObject(pageQuery(500, 1000)),
  paged: true,
  answers: { 200: z.array(${oneCamel}Schema) },
  errors: [],
  example: { answer: [example] },
});

export const get${one} = route({
  id: 'get${one}',
  method: 'GET',
  path: '/${name}/{name}',
  tag: '${title}',
  summary: 'Show a ${oneWords}',
  access: 'operator',
  params: nameParams,
  answers: { 200: ${oneCamel}Schema },
  errors: ['${oneSnake}_not_found'],
  example: { params: { name: example.name }, answer: example },
});
`;

const cliEdits = (names: Names): Edit[] => [
  create(`cli/src/verbs/${names.name}/${names.name}.ts`, verbsText(names)),
  create(
    `cli/src/verbs/${names.name}/${names.name}.test.ts`,
    `import { expect, test } from 'vitest';
import { register } from './${names.name}.ts';

test('lists ${names.words}', () => {
  expect(register).toBeTypeOf('function');
  expect.fail('fill in: run muster ${names.name} list against the stand-in, as windows.test.ts does');
});
`,
  ),
  insert('cli/src/program/nouns.ts', [
    "  {\n    name: 'maintenance',",
    `  {\n    name: '${names.name}',\n    group: fleet,\n    summary: ${quoted(`${names.writable ? 'List, show, create, and remove' : 'List and show'} ${names.about}`)},\n    load: () => import('../verbs/${names.name}/${names.name}.ts'),\n  },\n`,
  ]),
  create(
    `cli/src/shapes/${names.name}.ts`,
    `import { get${names.one}, list${names.pascal} } from '@muster/protocol/http';
import { answerOf, prints, type Shapes } from './shape.ts';

export const shapes: Shapes = {
  '${names.name} list': prints(answerOf(list${names.pascal})),
  '${names.name} show': prints(answerOf(get${names.one})),
};
`,
  ),
  insert('cli/src/shapes/index.ts', ['  ]);', `import('./${names.name}.ts'),\n`]),
];

const verbsText = ({ name, oneName, pascal, one, oneCamel, words, oneWords, example }: Names) => `
import { get${one}, list${pascal} } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { sanitiseLine } from '../../text/sanitize.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List ${words}, by name')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} list')
    .action(act(list));
  command
    .command('show')
    .description('Show a ${oneWords}')
    .argument('<${oneName}>')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} show ${example}')
    .action(act(show));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const rows = await call(list${pascal}, { all: true });
  if (out.json) return out.data(rows);
  if (rows.length === 0) return out.note('There are no ${words}.');
  out.table([{ heading: 'NAME', text: ({ name }) => name, flexible: true }], rows);
}

async function show(context: Context, name: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const ${oneCamel} = await call(get${one}, { params: { name } });
  if (out.json) out.data(${oneCamel});
  else out.print(out.style.color.bold(sanitiseLine(${oneCamel}.name)));
}
`;

/** Adds the term to the glossary, in alphabetical order. */
const glossaryEdit = ({ oneWords, term }: Names): Edit => ({
  path: 'docs/glossary.md',
  after(before) {
    const lines = (before ?? '').split('\n');
    const first = lines.findIndex((line) => line.startsWith('|---'));
    const next = lines.findIndex(
      (line, i) => i > first && (/^\| ([^|,]+)/.exec(line)?.[1]?.trim() ?? '\uffff').localeCompare(oneWords, 'en') > 0,
    );
    if (first === -1 || next === -1) throw new Error('docs/glossary.md has no table of terms; correct tools/new');
    return lines.toSpliced(next, 0, `| ${oneWords} | ${term} |`).join('\n');
  },
});
