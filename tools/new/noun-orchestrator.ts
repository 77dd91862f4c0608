import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { create, type Edit, insert } from './edit.ts';
import type { Names } from './noun-names.ts';

export function storeEdits(root: string, { name, snake, camel, oneCamel, pascal, words, writable }: Names): Edit[] {
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

export function orchestratorEdits(names: Names): Edit[] {
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
