import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { camelCase, create, type Edit, insert, pascalCase, type Skeleton } from './edit.ts';

interface Names {
  /** `gadget-kits` */
  name: string;
  /** `gadget_kits` */
  table: string;
  /** `gadgetKits`, `GadgetKits` */
  camel: string;
  pascal: string;
  /** `GadgetKit` */
  one: string;
  /** `Gadget kits` */
  title: string;
}

/**
 * Skeleton of a noun with a table of its own: its list, in every layer from the table to the console page.
 * @param name in the plural
 */
export function nounSkeleton(root: string, name: string): Skeleton {
  const words = name.replaceAll('-', ' ');
  const names: Names = {
    name,
    table: name.replaceAll('-', '_'),
    camel: camelCase(name),
    pascal: pascalCase(name),
    one: pascalCase(name).slice(0, -1),
    title: words.charAt(0).toUpperCase() + words.slice(1),
  };
  return {
    edits: [
      insert('tools/checks/nouns.ts', ['];\n\ninterface Layer', `  '${name}',\n`]),
      ...protocolEdits(names),
      ...storeEdits(root, names),
      ...orchestratorEdits(names),
      ...cliEdits(names),
      ...consoleEdits(names),
    ],
    next: [
      `protocol/src/http/${name}.ts: fields, further routes, their errors (protocol/src/errors.ts)`,
      'docs/glossary.md: define the term; node tools/checks/docs.ts --write; node tools/docs/write-openapi.ts',
      'protocol/src/http/event-types.ts: an event for each change; console/src/api/live/stale.ts: what it makes stale',
      `orchestrator/src/domain/${name}/${name}.ts: the rules; store: an index for each query (indices.test.ts)`,
      `cli/src/verbs/${name}/${name}.ts: further verbs; cli/src/completion: names to complete`,
      `console/src/pages/${name}: the page; console/src/app/navigation.ts: its place in the menu`,
      'tools/checks/api-contract.ts: what clients may rely on',
    ],
  };
}

const protocolEdits = ({ name, table, camel, pascal, one, title }: Names): Edit[] => [
  create(
    `protocol/src/http/${name}.ts`,
    `import { z } from 'zod';
import { pageQuery, unixSeconds } from './fields.ts';
import { route } from './route.ts';

export const ${camel}Schema = z
  .strictObject({ id: z.string(), name: z.string(), created_at: unixSeconds, created_by: z.string() })
  .meta({ id: '${one}' });
export type ${one} = z.infer<typeof ${camel}Schema>;

const example: ${one} = {
  id: '01KAGZ8S4F6G7H8J9K0M1N2P3Q',
  name: 'example',
  created_at: 1795000000,
  created_by: '21fe31dfa154a261626bf854046fd227',
};

export const list${pascal} = route({
  id: 'list${pascal}',
  method: 'GET',
  path: '/${name}',
  tag: '${title}',
  summary: 'List ${title.toLowerCase()}, by name',
  access: 'operator',
  query: z.strictObject(pageQuery(500, 1000)),
  paged: true,
  answers: { 200: z.array(${camel}Schema) },
  errors: [],
  example: { answer: [example] },
});
`,
  ),
  insert(
    'protocol/src/http/index.ts',
    ['import type { Route }', `import * as ${camel} from './${name}.ts';\n`],
    ["export * from './route.ts';", `export * from './${name}.ts';\n`],
    ['].flatMap((noun)', `  ${camel},\n`],
  ),
  insert('protocol/src/http/tag-descriptions.ts', ["  Settings: '", `  '${title}': 'fill in: what ${table} are.',\n`]),
];

function storeEdits(root: string, { name, table, camel, pascal, title }: Names): Edit[] {
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
import { createIndex, createTable } from './table.ts';

export const ${camel}: Migration = {
  version: ${version},
  name: '${title.toLowerCase()}',
  statements: (build) => [
    createTable(build, '${table}', {
      columns: { id: 'text', name: 'text', created_at: 'integer', created_by: 'text' },
      primaryKey: ['id'],
    }),
    createIndex(build, '${table}_name', '${table}', ['name', 'id']),
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
        `export interface ${pascal}Table {\n  id: string;\n  name: string;\n  created_at: number;\n  created_by: string;\n}\n\n`,
      ],
      ['  schema_version: SchemaVersionTable;', `  ${table}: ${pascal}Table;\n`],
    ),
    create(
      `orchestrator/src/store/queries/${name}.ts`,
      `import { defineQuery } from '../query.ts';

export const ${camel} = defineQuery('${name}/list', (db, p: { limit: number; offset: number }) =>
  db.selectFrom('${table}').selectAll().orderBy('name').orderBy('id').limit(p.limit).offset(p.offset),
);
`,
    ),
  ];
}

function orchestratorEdits({ name, camel, pascal, one, title }: Names): Edit[] {
  const handlers = `${camel}Handlers`;
  const registers = (path: string, routes: string): Edit =>
    insert(
      path,
      ['import { windowHandlers }', `import { ${handlers} } from '${routes}/${name}.ts';\n`],
      ['...windowHandlers(context),', `...${handlers}(context),\n`],
    );
  return [
    create(
      `orchestrator/src/domain/${name}/${name}.ts`,
      `import type { ${one} } from '@muster/protocol/http';
import { ${camel} } from '../../store/queries/${name}.ts';
import type { Context } from '../shared/context.ts';
import { type Page, type PageWish, readPage } from '../shared/page.ts';

/** By name. */
export const list${pascal} = ({ db }: Context, wish: PageWish): Promise<Page<${one}>> =>
  readPage(wish, (page) => db.all(${camel}, page));
`,
    ),
    create(
      `orchestrator/src/domain/${name}/${name}.contract.test.ts`,
      `import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { list${pascal} } from './${name}.ts';

describeDatabases('${title.toLowerCase()}', (fixture) => {
  test('lists ${title.toLowerCase()} by name', async () => {
    const { context } = await openDomain(fixture);
    expect(await list${pascal}(context, { limit: 10, offset: 0 })).toEqual({ items: [], more: false });
    expect.fail('fill in: create ${title.toLowerCase()}, and expect them in order, each with its event');
  });
});
`,
    ),
    create(
      `orchestrator/src/http/routes/${name}.ts`,
      `import { list${pascal} } from '../../domain/${name}/${name}.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function ${handlers}(context: Context) {
  return {
    list${pascal}: async ({ query }) => paged(await list${pascal}(context, query), query),
  } satisfies Partial<Handlers>;
}
`,
    ),
    registers('orchestrator/src/compose/http.ts', '../http/routes'),
    registers('orchestrator/test/real-api.ts', '../src/http/routes'),
  ];
}

const cliEdits = ({ name, camel, pascal, title }: Names): Edit[] => [
  create(
    `cli/src/verbs/${name}/${name}.ts`,
    `import { list${pascal} } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { listedId } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('list ${title.toLowerCase()}, by name')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} list')
    .action(act(list));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const rows = await call(list${pascal}, { query: { limit: '500' } });
  if (out.json) {
    out.data(rows);
    return undefined;
  }
  if (rows.length === 0) {
    out.note('There are no ${title.toLowerCase()}.');
    return undefined;
  }
  out.table(
    [
      { heading: 'ID', text: ({ id }) => listedId(id, out.style) },
      { heading: 'NAME', text: (row) => row.name, flexible: true },
    ],
    rows,
  );
  return undefined;
}
`,
  ),
  create(
    `cli/src/verbs/${name}/${name}.test.ts`,
    `import { expect, test } from 'vitest';
import { register } from './${name}.ts';

test('lists ${title.toLowerCase()}', () => {
  expect(register).toBeTypeOf('function');
  expect.fail('fill in: run muster ${name} list against the stand-in, as windows.test.ts does');
});
`,
  ),
  insert('cli/src/program/program.ts', [
    "  {\n    name: 'windows',",
    `  {\n    name: '${name}',\n    group: fleet,\n    summary: 'fill in: what ${title.toLowerCase()} are',\n    load: () => import('../verbs/${name}/${name}.ts'),\n  },\n`,
  ]),
  create(
    `cli/src/shapes/${name}.ts`,
    `import { list${pascal} } from '@muster/protocol/http';
import { answerOf, prints, type Shapes } from './shape.ts';

export const shapes: Shapes = { '${name} list': prints(answerOf(list${pascal})) };
`,
  ),
  insert('cli/src/shapes/index.ts', [
    "  windows: () => import('./fleet.ts'),",
    `  ${camel === name ? name : `'${name}'`}: () => import('./${name}.ts'),\n`,
  ]),
];

const consoleEdits = ({ name, camel, pascal, title }: Names): Edit[] => [
  create(
    `console/src/api/${name}.ts`,
    `import { list${pascal} } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const ${camel}Query = queryOptions({
  queryKey: keys.${camel},
  queryFn: ({ signal }) => call(list${pascal}, { all: true, signal }),
});
`,
  ),
  insert('console/src/api/query-keys.ts', ["  windows: ['windows'],", `  ${camel}: ['${name}'],\n`]),
  create(
    `console/src/pages/${name}/${name}-page.tsx`,
    `import { useQuery } from '@tanstack/react-query';
import { ${camel}Query } from '../../api/${name}.ts';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';

export function ${pascal}Page() {
  const { data, error, refetch } = useQuery(${camel}Query);
  return (
    <Page title="${title}">
      <Panel flush>
        {error ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : data === undefined ? (
          <SkeletonRows />
        ) : data.length === 0 ? (
          <Empty title="No ${title.toLowerCase()}" />
        ) : (
          <ul className="divide-y" aria-label="${title}">
            {data.map((row) => (
              <li key={row.id} className="px-4 py-2">
                {row.name}
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </Page>
  );
}
`,
  ),
  create(
    `console/src/pages/${name}/${name}-page.test.tsx`,
    `import { list${pascal} } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { ${pascal}Page } from './${name}-page.tsx';

test('shows the list', async () => {
  fakeApi().answerExamples(list${pascal});
  await renderPage(${pascal}Page);
  expect(await screen.findByRole('list', { name: '${title}' })).toBeTruthy();
  expect.fail('fill in: a case for ${title.toLowerCase()} in list-pages.test.tsx, and the actions of the page here');
});
`,
  ),
  insert('console/src/app/routes.tsx', [
    "  page('/windows',",
    `  page('/${name}', () => import('../pages/${name}/${name}-page.tsx'), '${pascal}Page'),\n`,
  ]),
];
