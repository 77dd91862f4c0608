import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addChange, camelCase, capital, create, type Edit, insert, pascalCase, quoted, type Skeleton } from './edit.ts';
import type { Names, NounOptions } from './noun-names.ts';
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

function storeEdits(root: string, { name, snake, camel, oneCamel, pascal, words, writable }: Names): Edit[] {
  const last = readdirSync(join(root, 'orchestrator/src/store/migrations'))
    .filter((file) => /^\d{4}-/.test(file))
    .sort()
    .at(-1) as string;
  const version = Number(last.slice(0, 4)) + 1;
  const file = `${String(version).padStart(4, '0')}-${name}.ts`;
  return [
    create(
      `orchestrator/src/store/migrations/${file}`,
      `import type { Migration } from './migration.ts';
import { createTable } from '../create-table.ts';

export const ${camel}: Migration = {
  version: ${version},
  name: '${words}',
  statements: (build) => [
    createTable(build, '${snake}', {
      columns: { name: 'text', ${writable ? "description: 'text', " : ''}created_at: 'integer', created_by: 'text' },
      primaryKey: ['name'],
    }),
  ],
};
`,
    ),
    insert(
      'orchestrator/src/store/migrations/index.ts',
      ['import type { Migration }', `import { ${camel} } from './${file}';\n`],
      ['];\n', `  ${camel},\n`],
    ),
    insert(
      'orchestrator/src/store/schema.ts',
      [
        'export interface SchemaVersionTable',
        `export interface ${pascal}Table {\n  name: string;\n${writable ? '  description: string;\n' : ''}  created_at: number;\n  created_by: string;\n}\n\n`,
      ],
      ['  schema_version: SchemaVersionTable;', `  ${snake}: ${pascal}Table;\n`],
    ),
    create(
      `orchestrator/src/store/queries/${name}.ts`,
      `import { defineQuery } from '../query.ts';

export const ${camel} = defineQuery('${name}/list', (db, p: { limit: number; offset: number }) =>
  db.selectFrom('${snake}').selectAll().orderBy('name').limit(p.limit).offset(p.offset),
);

export const ${oneCamel} = defineQuery('${name}/get', (db, p: { name: string }) =>
  db.selectFrom('${snake}').selectAll().where('name', '=', p.name),
);
`,
    ),
  ];
}

function orchestratorEdits(names: Names): Edit[] {
  const { name, oneCamel, words, handlers, table, pascal } = names;
  return [
    create(`orchestrator/src/domain/${name}/${name}.ts`, table ? tableDomainText(names) : domainText(names)),
    table
      ? create(
          `orchestrator/src/domain/${name}/${name}.contract.test.ts`,
          `import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { list${pascal} } from './${name}.ts';

describeDatabases('${words}', (fixture) => {
  test('lists ${words} by name', async () => {
    const { context } = await openDomain(fixture);
    expect(await list${pascal}(context, { limit: 10, offset: 0 })).toEqual({ items: [], more: false });
    expect.fail('fill in: create ${words}, and expect them in order, each with its event');
  });
});
`,
        )
      : create(
          `orchestrator/src/domain/${name}/${name}.test.ts`,
          `import { expect, test } from 'vitest';
import { list${pascal} } from './${name}.ts';

test('lists ${words} by name', async () => {
  expect(await list${pascal}({ limit: 10, offset: 0 })).toEqual({ items: [], more: false });
  expect.fail('fill in: expect the ${words} in order, and one by its name');
});
`,
        ),
    create(`orchestrator/src/http/routes/${name}.ts`, handlersText(names)),
    insert(
      'orchestrator/src/http/routes/index.ts',
      ['import { windowHandlers }', `import { ${oneCamel}Handlers } from './${name}.ts';\n`],
      ['...windowHandlers(context),', `...${handlers},\n`],
    ),
  ];
}

const tableDomainText = ({ name, oneSnake, pascal, one, camel, oneCamel, oneWords }: Names) => `
import { MusterError } from '@muster/protocol';
import type { ${one} } from '@muster/protocol/http';
import { ${oneCamel}, ${camel} } from '../../store/queries/${name}.ts';
import type { Context } from '../shared/context.ts';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';

/** By name. */
export const list${pascal} = ({ db }: Context, request: PageRequest): Promise<Page<${one}>> =>
  readPage(request, (page) => db.all(${camel}, page));

/** @throws MusterError ${oneSnake}_not_found */
export async function get${one}({ db }: Context, name: string): Promise<${one}> {
  const found = await db.get(${oneCamel}, { name });
  if (found === undefined)
    throw new MusterError('${oneSnake}_not_found', \`there is no ${oneWords} \${JSON.stringify(name.slice(0, 64))}\`);
  return found;
}
`;

const domainText = ({ oneSnake, pascal, one, camel, oneWords }: Names) => `
import { MusterError } from '@muster/protocol';
import type { ${one} } from '@muster/protocol/http';
import { suggestion } from '@muster/protocol/nearest';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';

/** By name. */
const ${camel}: readonly ${one}[] = [];
const byName: ReadonlyMap<string, ${one}> = new Map(${camel}.map((each) => [each.name, each]));

/** By name. */
export const list${pascal} = (request: PageRequest): Promise<Page<${one}>> =>
  readPage(request, async ({ limit, offset }) => ${camel}.slice(offset, offset + limit));

/** @throws MusterError ${oneSnake}_not_found, with the name that was probably meant */
export function get${one}(name: string): ${one} {
  const found = byName.get(name);
  if (found === undefined)
    throw new MusterError(
      '${oneSnake}_not_found',
      \`there is no ${oneWords} \${JSON.stringify(name.slice(0, 64))}\${suggestion(name, [...byName.keys()])}\`,
    );
  return found;
}
`;

const handlersText = ({ name, oneCamel, pascal, one, table }: Names) => `
import { get${one}, list${pascal} } from '../../domain/${name}/${name}.ts';
${table ? "import type { Context } from '../../domain/shared/context.ts';\n" : ''}import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export const ${oneCamel}Handlers = ${table ? '(context: Context) => (' : ''}{
  list${pascal}: async ({ query }) => paged(await list${pascal}(${table ? 'context, ' : ''}query), query),
  get${one}: ({ params }) => get${one}(${table ? 'context, ' : ''}params.name),
}${table ? ')' : ''} satisfies Partial<Handlers>;
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
    .description('list ${words}, by name')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} list')
    .action(act(list));
  command
    .command('show')
    .description('show a ${oneWords}')
    .argument('<${oneName}>')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} show ${example}')
    .action(act(show));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const rows = await call(list${pascal}, { all: true });
  if (out.json) {
    out.data(rows);
    return undefined;
  }
  if (rows.length === 0) {
    out.note('There are no ${words}.');
    return undefined;
  }
  out.table([{ heading: 'NAME', text: ({ name }) => name, flexible: true }], rows);
  return undefined;
}

async function show(context: Context, name: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const ${oneCamel} = await call(get${one}, { params: { name } });
  if (out.json) out.data(${oneCamel});
  else out.print(out.style.color.bold(sanitiseLine(${oneCamel}.name)));
  return undefined;
}
`;

const consoleEdits = (names: Names): Edit[] => [
  create(
    `console/src/api/${names.name}.ts`,
    `import { get${names.one}, list${names.pascal} } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const ${names.camel}Query = queryOptions({
  queryKey: keys.${names.camel},
  queryFn: ({ signal }) => call(list${names.pascal}, { all: true, signal }),
});

export const ${names.oneCamel}Query = (name: string) =>
  queryOptions({
    queryKey: keys.${names.oneCamel}(name),
    queryFn: ({ signal }) => call(get${names.one}, { params: { name }, signal }),
  });
`,
  ),
  insert('console/src/api/query-keys.ts', [
    "  windows: ['windows'],",
    `  ${names.camel}: ['${names.name}'],\n  ${names.oneCamel}: (name: string) => ['${names.oneName}', name],\n`,
  ]),
  create(`console/src/pages/${names.name}/${names.name}-page.tsx`, listPageText(names)),
  create(`console/src/pages/${names.name}/${names.oneName}-page.tsx`, onePageText(names)),
  insert('console/src/app/routes.tsx', [
    "  page('/windows',",
    `  page('/${names.name}', () => import('../pages/${names.name}/${names.name}-page.tsx'), '${names.pascal}Page'),
  page('/${names.name}/$${names.oneCamel}', () => import('../pages/${names.name}/${names.oneName}-page.tsx'), '${names.one}Page'),\n`,
  ]),
];

const listPageText = ({ name, oneCamel, camel, pascal, one, title, words, about }: Names) => `
import type { ${one} } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { ${camel}Query } from '../../api/${name}.ts';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';

const columns: readonly Column<${one}>[] = [
  {
    id: 'name',
    header: 'Name',
    width: 'minmax(6.5rem,2fr)',
    sort: ({ name }) => name,
    cell: ({ name }) => (
      <Link
        to="/${name}/$${oneCamel}"
        params={{ ${oneCamel}: name }}
        className="inline-flex max-w-full rounded font-medium text-text hover:underline"
      >
        <Line text={name} maxLength={64} />
      </Link>
    ),
  },
];

const filters = [{ name: 'q', label: 'Search ${words}', placeholder: 'Search ${words}' }] as const;
const matches = ({ name }: ${one}, { q }: FilterTexts) => containsText(q, name);

export function ${pascal}Page() {
  const navigate = useNavigate();
  const query = useQuery(${camel}Query);
  return (
    <ListPage
      title="${title}"
      description=${`{${quoted(`${capital(about)}.`)}}`}
      query={query}
      rows={query.data}
      filters={filters}
      matches={matches}
      sortedBy="name"
      columns={columns}
      rowKey={({ name }) => name}
      onOpen={({ name }) => void navigate({ to: '/${name}/$${oneCamel}', params: { ${oneCamel}: name } })}
      noMatch="No matching ${words}"
      empty={<Empty title="No ${words}" />}
    />
  );
}
`;

const onePageText = ({ name, one, oneCamel, title, oneWords }: Names) => `
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { ${oneCamel}Query } from '../../api/${name}.ts';
import { Facts } from '../../parts/facts.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Failure, SkeletonRows } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';

export function ${one}Page() {
  const { ${oneCamel}: name } = useParams({ strict: false }) as { ${oneCamel}: string };
  const { data, error, refetch } = useQuery(${oneCamel}Query(name));
  return (
    <Page title={<Line text={name} maxLength={64} />} name={name} subtitle="${title.slice(0, -1)}">
      <Panel>
        {error ? (
          <Failure error={error} retry={() => void refetch()} title="This ${oneWords} could not be loaded" />
        ) : data === undefined ? (
          <SkeletonRows />
        ) : (
          <Facts facts={[['Name', data.name]]} />
        )}
      </Panel>
    </Page>
  );
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

/** Adds the list to the menu after Modules. The shortcut is the first letter of the name that no other page uses. */
function menuEdits(root: string, { name, title, about }: Names): Edit[] {
  const path = 'console/src/app/navigation.ts';
  const menu = readFileSync(join(root, path), 'utf8');
  const used = new Set([...menu.matchAll(/ key: '(.)'/g)].map(([, key]) => key));
  const key = [...`${name.replaceAll('-', '')}abcdefghijklmnopqrstuvwxyz`].find(
    (letter) => letter !== 'g' && !used.has(letter),
  );
  if (key === undefined) throw new Error(`${path} uses every letter as a shortcut; free one of them`);
  return [
    insert(
      path,
      ["} from 'lucide-react';", menu.includes('  Shapes,') ? '' : '  Shapes,\n'],
      [
        "      { path: '/assignments',",
        `      { path: '/${name}', label: '${title}', icon: Shapes, key: '${key}' },\n`,
      ],
    ),
    insert(
      'docs/console.md',
      ['| Assignments | ', `| ${title} | see ${about} |\n`],
      ['| `g s` | go to Assignments |', `| \`g ${key}\` | go to ${title} |\n`],
    ),
  ];
}

const consoleTestEdits = ({ name, oneName, pascal, one, oneCamel, title, words, example }: Names): Edit[] => [
  create(
    `console/src/pages/${name}/${oneName}-page.test.tsx`,
    `import { get${one} } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { ${one}Page } from './${oneName}-page.tsx';

test('shows an object by its name', async () => {
  fakeApi().answerExamples(get${one});
  await renderPage(${one}Page, { path: '/${name}/$${oneCamel}', at: '/${name}/${example}' });
  expect((await screen.findAllByText('${example}')).length).toBeGreaterThan(0);
  expect.fail('fill in: the details of ${words}, and the page while it loads and after an error');
});
`,
  ),
  insert(
    'console/src/pages/list-pages.test.tsx',
    ['  listLatestDrift,', `  list${pascal},\n`],
    ["import { ModulesPage } from './modules", `import { ${pascal}Page } from './${name}/${name}-page.tsx';\n`],
    [
      "  {\n    ...{ name: 'windows',",
      `  {
    ...{ name: '${words}', Page: ${pascal}Page, route: list${pascal}, none: [], empty: 'No ${words}', full: '${example}' },
    ...{ list: ['grid', '${title}'], noMatch: ['?q=x', 'No matching ${words}'] },
  },\n`,
    ],
  ),
  insert('e2e/browser/pages.ts', ['    module: ', `    ${oneCamel}: '${example}',\n`]),
];
