import { append, capital, create, type Edit, insert, substitute } from './edit.ts';
import type { Names } from './noun-names.ts';

/**
 * Returns the edits that let admins create and remove objects, in every layer from the database to the console. Must be
 * applied after the edits for a noun with a table. Objects have a description.
 */
export const writeEdits = (names: Names): Edit[] => [
  ...protocolEdits(names),
  ...storeEdits(names),
  ...domainEdits(names),
  ...targetEdits(names),
  ...cliEdits(names),
  ...consoleListEdits(names),
  ...consolePageEdits(names),
];

const protocolEdits = ({ name, oneCamel, one, title, oneWords, oneSnake }: Names): Edit[] => {
  const path = `protocol/src/http/${name}.ts`;
  return [
    insert(
      path,
      ['created_at: unixSeconds,', 'description: z.string(), '],
      ['  created_at: 1795000000,', "  description: 'its purpose',\n"],
    ),
    append(
      path,
      `
const objectName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be letters, digits, ".", "_", and "-", at most 128');
const description = z
  .string()
  .min(1, 'must not be empty')
  .max(1024)
  .refine((text) => !/\\p{Cc}/u.test(text), 'must not contain control characters');

export const create${one} = route({
  id: 'create${one}',
  method: 'POST',
  path: '/${name}',
  tag: '${title}',
  summary: 'Create a ${oneWords}',
  access: 'admin',
  body: z.strictObject({ name: objectName, description }),
  answers: { 201: ${oneCamel}Schema },
  errors: ['name_taken'],
  example: { body: { name: example.name, description: example.description }, answer: example },
});

export const remove${one} = route({
  id: 'remove${one}',
  method: 'DELETE',
  path: '/${name}/{name}',
  tag: '${title}',
  summary: 'Remove a ${oneWords}',
  access: 'admin',
  params: nameParams,
  answers: { 204: null },
  errors: ['${oneSnake}_not_found'],
  example: { params: { name: example.name } },
});
`,
    ),
    insert('protocol/src/http/definition/event-types.ts', [
      '} as const satisfies Readonly<Record<string, EventKind>>;',
      ['created', 'removed']
        .map(
          (change) =>
            `  '${oneSnake}.${change}': { severity: ['info'], when: 'a ${oneWords} was ${change}', target: '${oneSnake}', metadata: [] },\n`,
        )
        .join(''),
    ]),
    insert('tools/checks/api-contract.ts', [
      'GET /settings admin > 200',
      `POST /${name} admin < name description > 201 name description ! 400 403 409\nDELETE /${name}/{name} admin > 204 ! 403 404\n`,
    ]),
  ];
};

const storeEdits = ({ name, snake, one }: Names): Edit[] => [
  append(
    `orchestrator/src/store/queries/${name}.ts`,
    `
export const insert${one} = defineQuery(
  '${name}/insert',
  (db, p: { name: string; description: string; created_at: number; created_by: string }) =>
    db.insertInto('${snake}').values({
      name: p.name,
      description: p.description,
      created_at: p.created_at,
      created_by: p.created_by,
    }),
);

export const delete${one} = defineQuery('${name}/delete', (db, p: { name: string }) =>
  db.deleteFrom('${snake}').where('name', '=', p.name),
);
`,
  ),
];

const domainEdits = ({ name, pascal, one, oneCamel, camel, oneWords, oneSnake }: Names): Edit[] => {
  const domain = `orchestrator/src/domain/${name}/${name}.ts`;
  const handlers = `orchestrator/src/http/routes/${name}.ts`;
  return [
    insert(
      domain,
      ['import type { Context }', "import { audited, type Happening } from '../audit/audit.ts';\n"],
      [
        "import { type Page, type PageRequest, readPage } from '../shared/page.ts';",
        "import { statement } from '../../store/transaction.ts';\n",
      ],
    ),
    substitute(
      domain,
      [`import { ${oneCamel}, ${camel} }`, `import { delete${one}, insert${one}, ${oneCamel}, ${camel} }`],
      ['import type { Context }', 'import { type Actor, type Context, seconds }'],
    ),
    append(
      domain,
      `
const happened = (type: '${oneSnake}.created' | '${oneSnake}.removed', actor: Actor, name: string): Happening => ({
  type,
  actor,
  target: { type: '${oneSnake}', id: name, name },
  summary: \`${oneWords} \${name} \${type.slice('${oneSnake}.'.length)}\`,
  metadata: {},
});

/** @throws MusterError name_taken */
export async function create${one}(
  context: Context,
  actor: Actor,
  { name, description }: Pick<${one}, 'name' | 'description'>,
): Promise<${one}> {
  const created: ${one} = { name, description, created_at: seconds(context.now()), created_by: actor.id };
  await context.db.write({
    name: '${name}/create',
    statements: [
      statement(
        ${oneCamel},
        { name },
        { expect: 'no_row', else: 'name_taken', detail: \`a ${oneWords} named \${name} already exists\` },
      ),
      statement(insert${one}, created),
      audited(context, happened('${oneSnake}.created', actor, name)),
    ],
  });
  return created;
}

/** @throws MusterError ${oneSnake}_not_found */
export async function remove${one}(context: Context, actor: Actor, name: string): Promise<void> {
  await get${one}(context, name);
  await context.db.write({
    name: '${name}/remove',
    statements: [
      statement(delete${one}, { name }, { expect: 'changed', else: '${oneSnake}_not_found' }),
      audited(context, happened('${oneSnake}.removed', actor, name)),
    ],
  });
}
`,
    ),
    substitute(
      handlers,
      [
        `import { get${one}, list${pascal} } from '../../domain/${name}/${name}.ts';`,
        `import { create${one}, get${one}, list${pascal}, remove${one} } from '../../domain/${name}/${name}.ts';\nimport { actorIn } from '../../domain/operators/sessions.ts';`,
      ],
      [
        '}) satisfies',
        `  create${one}: ({ body, session }) => create${one}(context, actorIn(session), body),\n  remove${one}: ({ params, session }) => remove${one}(context, actorIn(session), params.name),\n}) satisfies`,
      ],
    ),
    {
      path: `orchestrator/src/domain/${name}/${name}.contract.test.ts`,
      after: () => domainTestText(name, one, pascal, oneSnake),
    },
  ];
};

const domainTestText = (name: string, one: string, pascal: string, oneSnake: string): string => `
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { newAdmin, openDomain } from '../../../test/domain.ts';
import { listAudit } from '../audit/audit.ts';
import { create${one}, get${one}, list${pascal}, remove${one} } from './${name}.ts';

describeDatabases('${name.replaceAll('-', ' ')}', (fixture) => {
  test('creates, lists by name, and removes, with an event for each change', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const b = await create${one}(context, actor, { name: 'b', description: 'second' });
    const a = await create${one}(context, actor, { name: 'a', description: 'first' });
    expect(await list${pascal}(context, { limit: 10, offset: 0 })).toEqual({ items: [a, b], more: false });
    expect(await get${one}(context, 'a')).toEqual({ ...a, description: 'first', created_by: actor.id });
    const again = create${one}(context, actor, { name: 'a', description: 'x' });
    await expect(again).rejects.toMatchObject({ code: 'name_taken' });
    await remove${one}(context, actor, 'a');
    await expect(get${one}(context, 'a')).rejects.toMatchObject({ code: '${oneSnake}_not_found' });
    await expect(remove${one}(context, actor, 'a')).rejects.toMatchObject({ code: '${oneSnake}_not_found' });
    const { events } = await listAudit(context, { category: '${oneSnake}' });
    expect(events.map(({ event_type, target }) => [event_type, target.name]).reverse()).toEqual([
      ['${oneSnake}.created', 'b'],
      ['${oneSnake}.created', 'a'],
      ['${oneSnake}.removed', 'a'],
    ]);
    expect.fail('fill in: the rules of ${name}');
  });
});
`;

/** Links events to the object's page. */
const targetEdits = ({ name, oneSnake }: Names): Edit[] => [
  insert('console/src/pages/audit/target-link.tsx', [
    "    case 'operator':\n      return '/operators';",
    `    case '${oneSnake}':\n      return \`/${name}/\${encodeURIComponent(name || id)}\`;\n`,
  ]),
];

const cliEdits = ({ name, pascal, one, oneWords, words, example }: Names): Edit[] => {
  const verbs = `cli/src/verbs/${name}/${name}.ts`;
  return [
    substitute(
      verbs,
      [`import { get${one}, list${pascal} }`, `import { create${one}, get${one}, list${pascal}, remove${one} }`],
      [
        'import type { Context }',
        "import { removeEach } from '../../execution/each.ts';\nimport type { Exit } from '../../exit.ts';\nimport type { Context }",
      ],
      [
        '    .action(act(show));\n',
        `    .action(act(show));
  command
    .command('create')
    .description('Create a ${oneWords}')
    .argument('<name>')
    .argument('<description>')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} create ${example} "its purpose"')
    .action(act(create));
  command
    .command('remove')
    .description('Remove ${words}')
    .argument('<${name}...>')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('after', '\\nExample:\\n  $ muster ${name} remove ${example}')
    .action(act(remove));
`,
      ],
      [
        "[{ heading: 'NAME', text: ({ name }) => name, flexible: true }]",
        "[{ heading: 'NAME', text: ({ name }) => name }, { heading: 'DESCRIPTION', text: ({ description }) => description, flexible: true }]",
      ],
    ),
    append(
      verbs,
      `
async function create(context: Context, name: string, description: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const created = await call(create${one}, { body: { name, description } });
  if (out.json) out.data(created);
  out.print(\`Created \${out.style.color.bold(sanitiseLine(created.name))}.\`);
}

async function remove(context: Context, names: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  const { call } = await context.connect();
  return removeEach(context, names, { yes, noun: '${oneWords}' }, (name) =>
    call(remove${one}, { params: { name } }),
  );
}
`,
    ),
    substitute(
      `cli/src/shapes/${name}.ts`,
      [`import { get${one}, list${pascal} }`, `import { create${one}, get${one}, list${pascal} }`],
      ['import { answerOf, prints,', 'import { answerOf, doneTo, prints,'],
      ['};\n', `  '${name} create': prints(answerOf(create${one})),\n  '${name} remove': doneTo('removed'),\n};\n`],
    ),
  ];
};

const consoleListEdits = ({ name, oneName, pascal, one, camel, words, oneWords, oneSnake }: Names): Edit[] => {
  const list = `console/src/pages/${name}/${name}-page.tsx`;
  const api = `console/src/api/${name}.ts`;
  return [
    insert('console/src/api/live/outdated-keys.ts', [',window,audit', `,${oneSnake}`]),
    insert('console/src/pages/notifications/event-labels.ts', [
      '};\n\n/** Labels for several events',
      ['created', 'removed'].map((change) => `  '${oneSnake}.${change}': '${capital(oneWords)} ${change}',\n`).join(''),
    ]),
    substitute(
      api,
      [`import { get${one}, list${pascal} }`, `import { create${one}, get${one}, list${pascal}, remove${one} }`],
      ['import { routeQuery }', "import { call } from './client.ts';\nimport { routeQuery }"],
    ),
    append(
      api,
      `
export const add${one} = (name: string, description: string) => call(create${one}, { body: { name, description } });

export const delete${one} = (name: string) => call(remove${one}, { params: { name } });
`,
    ),
    create(`console/src/pages/${name}/add-${oneName}.tsx`, addText(name, one, oneWords)),
    substitute(
      list,
      [
        'import { Empty }',
        `import { Plus } from 'lucide-react';\nimport { useState } from 'react';\nimport { useIsAdmin } from '../../api/sign-in/use-session.ts';\nimport { Button } from '../../parts/button.tsx';\nimport { Add${one} } from './add-${oneName}.tsx';\nimport { Empty }`,
      ],
      [
        '  },\n];\n\nconst filters',
        `  },
  {
    id: 'description',
    header: 'Description',
    width: 'minmax(8rem,3fr)',
    cell: ({ description }) => <Line text={description} maxLength={200} />,
  },
];

const filters`,
      ],
      [
        `  const query = useQuery(${camel}Query);\n`,
        `  const query = useQuery(${camel}Query);\n  const isAdmin = useIsAdmin();\n  const [adding, setAdding] = useState(false);\n`,
      ],
      [
        '      query={query}\n',
        `      actions={
        isAdmin && (
          <Button look="primary" icon={<Plus className="size-4" />} onClick={() => setAdding(true)}>
            Add ${oneWords}
          </Button>
        )
      }
      query={query}
`,
      ],
      [
        `empty={<Empty title="No ${words}" />}\n    />`,
        `empty={<Empty title="No ${words}" />}\n    >\n      {adding && <Add${one} onClose={() => setAdding(false)} />}\n    </ListPage>`,
      ],
    ),
  ];
};

const consolePageEdits = ({ name, oneName, one, oneCamel, oneWords }: Names): Edit[] => [
  substitute(
    `console/src/pages/${name}/${oneName}-page.tsx`,
    [
      `import { useParams }`,
      `import { useState } from 'react';\nimport { useIsAdmin } from '../../api/sign-in/use-session.ts';\nimport { Button } from '../../parts/button.tsx';\nimport { Confirm } from '../../parts/dialog/dialog.tsx';\nimport { notify } from '../../parts/dialog/toast.tsx';\nimport { useNavigate, useParams }`,
    ],
    [`import { ${oneCamel}Query }`, `import { delete${one}, ${oneCamel}Query }`],
    [
      '  return (\n    <Page ',
      `  const isAdmin = useIsAdmin();
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  return (
    <Page
      actions={
        isAdmin && (
          <Button look="danger" onClick={() => setRemoving(true)}>
            Remove
          </Button>
        )
      }
      `,
    ],
    ["[['Name', data.name]]", "[['Name', data.name], ['Description', data.description]]"],
    [
      '    </Page>',
      `      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={\`Remove the ${oneWords} \${name}?\`}
        action="Remove ${oneWords}"
        onConfirm={async () => {
          await delete${one}(name);
          notify(\`Removed the ${oneWords} \${name}\`);
          await navigate({ to: '/${name}' });
        }}
      />
    </Page>`,
    ],
  ),
];

const addText = (name: string, one: string, oneWords: string): string => `
import { useMutation } from '@tanstack/react-query';
import { add${one} } from '../../api/${name}.ts';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Input, TextArea } from '../../parts/form/field.tsx';

export function Add${one}({ onClose }: { readonly onClose: () => void }) {
  const add = useMutation({
    mutationFn: ({ name, description }: { name: string; description: string }) => add${one}(name, description),
    onSuccess: ({ name }) => {
      notify(\`Added the ${oneWords} \${name}\`);
      onClose();
    },
  });
  return (
    <FormDialog
      title="Add ${oneWords}"
      action="Add ${oneWords}"
      request={add}
      onSubmit={(event) => {
        const form = new FormData(event.currentTarget);
        add.mutate({ name: String(form.get('name')).trim(), description: String(form.get('description')).trim() });
      }}
      onClose={onClose}
    >
      <Input label="Name" name="name" required autoFocus hint="Letters, digits, dots, - or _." />
      <TextArea label="Description" name="description" required rows={3} maxLength={1024} />
    </FormDialog>
  );
}
`;
