import { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain } from '../../../test/domain.ts';
import { getAgent } from '../agents/agents.ts';
import { currentDesiredSet } from '../operations/resolve-agent.ts';
import { listValues } from '../operations/values.ts';
import { createSecret } from '../secrets/secrets.ts';
import type { Context } from '../shared/context.ts';
import { createAssignment, type NewAssignment, removeAssignment, updateAssignment } from './assignments.ts';
import { removeModule, uploadModule } from './modules.ts';

const source = `
name: ntp
supports: [{ platform: linux }]
parameters:
  servers: { type: list, merge: unique, items: { type: string, minLength: 1 }, default: [pool] }
  options: { type: map, merge: deep, properties: { port: { type: integer } }, required: [port], default: { port: 123 } }
  user: { type: string, default: ntp }
resources:
  - resource: { file-unix: { path: /ntp, content: "\${{ param.servers | join(' ') }} \${{ param.options | json }} \${{ param.user }}" } }
`;

describeAnyDatabase('values of parameters', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    await uploadModule(context, actor, 'ntp', source);
    const { id } = await newAgent(domain, actor, 'web-1');
    const all = 'attr.platform=linux';
    const assign = (name: string, more: Partial<NewAssignment>) =>
      createAssignment(context, actor, { name, modules: ['ntp'], selector: all, ...more });
    const content = async () => {
      const { resolved } = await currentDesiredSet(context, await getAgent(context, id), []);
      return resolved.resources.map(({ body }) => body.content).join();
    };
    const found = (promise: Promise<unknown>) =>
      promise.then(
        () => 'done',
        (error: unknown) => {
          if (!(error instanceof MusterError)) throw error;
          return `${error.code} ${(error.errors ?? []).map(({ path, message }) => `${path} ${message}`).join('; ')}`;
        },
      );
    return { domain, context, actor, id, assign, content, found };
  };

  test('merges the values of several assignments, from low to high precedence', async () => {
    const { context, actor, assign, content } = await open();
    await assign('a', { precedence: 10, parameters: { ntp: { servers: ['a', 'pool'], options: { log: true } } } });
    await assign('b', { parameters: { ntp: { servers: ['b'], options: { port: 1123, log: false }, user: 'b' } } });
    expect(await content()).toBe('pool b a {"port":1123,"log":true} b');
    await updateAssignment(context, actor, 'b', { precedence: 20 });
    expect(await content()).toBe('pool a b {"port":1123,"log":false} b');
  });

  test('refuses a value that does not fit, naming the module, the parameter, and the path in the value', async () => {
    const { assign, found } = await open();
    expect(await found(assign('a', { parameters: { ntp: { servers: ['x', ''] } } }))).toBe(
      'invalid_input /parameters/ntp/servers/1 module "ntp": parameter servers[1]: must have at least 1 character',
    );
    // Another assignment or the default may provide the required key.
    expect(await found(assign('a', { parameters: { ntp: { options: { log: true } } } }))).toBe('done');
  });

  test('names the assignment whose value no longer fits', async () => {
    const { context, actor, assign, content, found } = await open();
    await assign('a', { parameters: { ntp: { options: { port: 1 } } } });
    await assign('b', { parameters: { ntp: { options: { log: true } } }, precedence: 1 });
    await uploadModule(
      context,
      actor,
      'ntp',
      source
        .replace('{ port: { type: integer } }', '{ port: { minimum: 1024 } }')
        .replace('{ port: 123 }', '{ port: 1123 }'),
    );
    expect(await found(content())).toBe(
      'module_unresolved /modules/ntp/parameters/options module "ntp": parameter options.port: must be at least 1024 (from assignment "a")',
    );
  });

  test('refuses contradicting values of the same precedence, naming both assignments', async () => {
    const { assign, content, found } = await open();
    await assign('a', { parameters: { ntp: { options: { port: 1 } } } });
    await assign('b', { parameters: { ntp: { options: { port: 2 } } } });
    expect(await found(content())).toBe(
      'module_conflict /parameters/ntp/options/port assignments a and b set the parameter options.port of module ntp to different values; give one of them a higher precedence',
    );
  });

  test('takes values from an assignment without modules, for agents that have the module', async () => {
    const { context, actor, assign, content, found } = await open();
    const values = { ntp: { user: 'by values' } };
    await assign('values', { modules: [], parameters: values });
    expect(await content()).toBe('');
    await assign('modules', {});
    expect(await content()).toContain('by values');
    await updateAssignment(context, actor, 'values', { selector: 'attr.platform=windows' });
    expect(await content()).toContain('ntp');
    await uploadModule(
      context,
      actor,
      'site',
      'name: site\nsupports: [{ platform: linux }]\nrequires: [{ module: ntp, with: { user: site } }]\n',
    );
    await updateAssignment(context, actor, 'modules', { modules: ['site'] });
    expect(await content()).toContain('site');
    // The module that gets the values is required by another module.
    await updateAssignment(context, actor, 'values', { selector: 'attr.platform=linux' });
    expect(await content()).toContain('by values');
    expect(await found(updateAssignment(context, actor, 'values', { precedence: -2 }))).toBe('done');
    expect(await content()).toContain('site');
  });

  test('refuses an assignment without modules if it sets no value, uses audit mode, or waits for maintenance windows', async () => {
    const { assign, found } = await open();
    const parameters = { ntp: { user: 'x' } };
    const fault = (more: Partial<NewAssignment>) => found(assign('x', { modules: [], parameters, ...more }));
    for (const none of [{}, { ntp: {} }])
      expect(await fault({ parameters: none })).toBe(
        'invalid_input /modules must name a module, unless the assignment sets parameters',
      );
    expect(await fault({ mode: 'audit' })).toMatch(
      /^invalid_input \/mode an assignment without modules has nothing to audit/,
    );
    expect(await fault({ window_only: true })).toMatch(
      /^invalid_input \/window_only an assignment without modules applies nothing/,
    );
    expect(await fault({ parameters: { nto: {}, ...parameters } })).toBe(
      'unknown_module /parameters/nto there is no module "nto"',
    );
    expect(await fault({ modules: ['ntp'], parameters: { ...parameters, other: {} } })).toMatch(
      /^invalid_input \/parameters\/other other is not a module of this assignment/,
    );
    const many = Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`m${index}`, { a: 1 }]));
    expect(await fault({ parameters: many })).toBe('invalid_input /parameters must name at most 256 modules');
  });

  test('refuses values that violate a condition, in the assignment or during resolution', async () => {
    const { context, actor, assign, content, found } = await open();
    const range = `name: range
supports: [{ platform: linux }]
parameters: { first: { type: integer, default: 1 }, last: { type: integer, default: 9 }, name: { type: string, default: a, pattern: "^[a-z]+$" } }
require: [{ that: param.first <= param.last, message: swap first and last }]
`;
    await uploadModule(context, actor, 'range', range);
    const save = (name: string, values: object) =>
      found(assign(name, { modules: ['range'], parameters: { range: values as never } }));
    expect(await save('x', { first: 5, last: 4 })).toBe(
      'invalid_input /parameters/range module "range": swap first and last',
    );
    expect(await save('x', { name: 'A' })).toBe(
      'invalid_input /parameters/range/name module "range": parameter name: must match the pattern ^[a-z]+$',
    );
    expect(await save('a', { first: 5 })).toBe('done');
    expect(await save('b', { last: 4 })).toBe('done');
    expect(await found(content())).toBe(
      'module_unresolved /modules/range/require/0 module "range": swap first and last',
    );
    const site = 'name: site\nsupports: [{}]\nrequires: [{ module: range, with: { first: 3, last: 2 } }]\n';
    expect(await found(uploadModule(context, actor, 'site', site))).toBe(
      'module_invalid /requires/0/with module "range": swap first and last',
    );
  });

  test('lists values with their origin, and overridden values', async () => {
    const { context, actor, id, assign } = await open();
    const listed = async (more = {}) => (await listValues(context, 'web-1', { limit: 100, offset: 0, ...more })).items;
    expect(await listed()).toEqual([]);
    await assign('a', { precedence: 10, parameters: { ntp: { servers: ['a'], user: 'a' } } });
    await assign('b', { parameters: { ntp: { servers: ['b'], user: 'b' } } });
    await assign('audit', { mode: 'audit', parameters: { ntp: { user: 'c' } } });
    const from = (name: string, value: unknown, precedence = 0) => ({ from: 'assignment', name, precedence, value });
    const own = (value: unknown) => ({ from: 'default', name: null, precedence: null, value });
    expect(await listed()).toEqual([
      {
        ...{
          module: 'ntp',
          parameter: 'servers',
          merge: 'unique',
          value: ['pool', 'b', 'a'],
          overrode: [],
          faults: [],
        },
        layers: [from('a', ['a'], 10), from('b', ['b']), own(['pool'])],
      },
      {
        ...{ module: 'ntp', parameter: 'options', merge: 'deep', value: { port: 123 }, overrode: [], faults: [] },
        layers: [own({ port: 123 })],
      },
      {
        ...{ module: 'ntp', parameter: 'user', merge: 'replace', value: 'a', layers: [from('a', 'a', 10)], faults: [] },
        overrode: [from('b', 'b'), own('ntp')],
      },
    ]);
    expect(await listed({ limit: 1, offset: 2 })).toMatchObject([{ parameter: 'user' }]);
    expect(await listed({ module: 'other' })).toEqual([]);
    const page = await listValues(context, id, { limit: 2, offset: 0 });
    expect([page.items.length, page.more]).toEqual([2, true]);
    await updateAssignment(context, actor, 'a', { precedence: 0 });
    expect((await listed())[2]).toMatchObject({
      ...{ parameter: 'user', value: null, layers: [from('b', 'b'), from('a', 'a')], overrode: [] },
      faults: [
        'assignments a and b set the parameter user of module ntp to different values; give one of them a higher precedence',
      ],
    });
    await expect(listValues(context, 'no', { limit: 1, offset: 0 })).rejects.toThrow('there is no agent');
  });

  test('lists the name of a secret, never its value', async () => {
    const { context, actor, assign } = await open();
    await createSecret(context, actor, { name: 'db', value: 'hunter2' });
    const source = `name: db
supports: [{ platform: linux }]
parameters: { password: { type: string, format: secret-name }, hosts: { type: list, default: ["\${{ secrets.db }}"] } }
resources: [{ resource: { file-unix: { path: /db, content: "\${{ secret(param.password) }}" } } }]
`;
    await uploadModule(context, actor, 'db', source);
    await assign('a', { modules: ['db'], parameters: { db: { password: 'db' } } });
    const { items } = await listValues(context, 'web-1', { limit: 100, offset: 0 });
    expect(items.map(({ value }) => value)).toEqual(['db', ['${{ secrets.db }}']]);
    expect(JSON.stringify(items)).not.toContain('hunter2');
  });

  test('ends a page at 4 MiB', async () => {
    const { context, actor, assign } = await open();
    const names = Array.from({ length: 5 }, (_, index) => `p${index}`);
    const declared = names.map((name) => `${name}: { type: string }`).join(', ');
    await uploadModule(
      context,
      actor,
      'big',
      `name: big\nsupports: [{ platform: linux }]\nparameters: { ${declared} }\n`,
    );
    const values = Object.fromEntries(names.map((name) => [name, 'x'.repeat(900_000)]));
    await assign('a', { modules: ['big'], parameters: { big: values } });
    const page = await listValues(context, 'web-1', { limit: 100, offset: 0 });
    expect([page.items.length, page.more]).toEqual([2, true]);
    expect((await listValues(context, 'web-1', { limit: 100, offset: 4 })).items).toHaveLength(1);
  });

  test('refuses to remove a module that an assignment gives values to', async () => {
    const { context, actor, assign, found } = await open();
    await assign('values', { modules: [], parameters: { ntp: { user: 'x' } } });
    expect(await found(removeModule(context, actor, 'ntp'))).toMatch(/^module_in_use/);
    await removeAssignment(context, actor, 'values');
    expect(await found(removeModule(context, actor, 'ntp'))).toBe('done');
  });

  test('refuses an assignment whose module is removed while it is saved', async () => {
    const { context, actor, found } = await open();
    const late: Context = {
      ...context,
      db: new Proxy(context.db, {
        get(db, name) {
          if (name !== 'write') return Reflect.get(db, name);
          return async (unit: Parameters<typeof db.write>[0]) => {
            await removeModule(context, actor, 'ntp');
            return db.write(unit);
          };
        },
      }),
    };
    const requested = { name: 'v', modules: [], selector: 'a=b', parameters: { ntp: { user: 'x' } } };
    expect(await found(createAssignment(late, actor, requested))).toMatch(/^unknown_module/);
  });
});
