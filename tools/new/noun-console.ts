import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { capital, create, type Edit, insert, quoted } from './edit.ts';
import type { Names } from './noun-names.ts';

export const consoleEdits = (names: Names): Edit[] => [
  create(
    `console/src/api/${names.name}.ts`,
    `import { get${names.one}, list${names.pascal} } from '@muster/protocol/http';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export const ${names.camel}Query = routeQuery(keys.${names.camel}, list${names.pascal}, { all: true });

export const ${names.oneCamel}Query = (name: string) => routeQuery(keys.${names.oneCamel}(name), get${names.one}, { params: { name } });
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

/** Adds the list to the menu after Modules. The shortcut is the first letter of the name that no other page uses. */
export function menuEdits(root: string, { name, title, about }: Names): Edit[] {
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

export const consoleTestEdits = ({ name, oneName, pascal, one, oneCamel, title, words, example }: Names): Edit[] => [
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
      "  {\n    ...{\n      name: 'windows',",
      `  {
    ...{ name: '${words}', Page: ${pascal}Page, route: list${pascal}, none: [], empty: 'No ${words}', full: '${example}' },
    ...{ list: ['grid', '${title}'], noMatch: ['?q=x', 'No matching ${words}'] },
  },\n`,
    ],
  ),
  insert('e2e/browser/pages.ts', ['    module: ', `    ${oneCamel}: '${example}',\n`]),
];
