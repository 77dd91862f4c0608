import { kinds } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { expectModuleApplied } from './hosts/documentation/documented-module.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import { productSecrets, productsState, productsUp } from './hosts/http-api/products.ts';
import { httpApi, httpApiState, httpApiUp } from './hosts/http-api/subjects.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

const reason = noHosts();

describe.skipIf(reason !== null)(`objects behind HTTP APIs${reason === null ? '' : ` (${reason})`}`, () => {
  test('plans and applies a service that starts slowly together with its objects', async () => {
    const hosts = await TestHosts.open();
    try {
      const machine = await hosts.start('http-object');
      const agent = await DrivenAgent.start(machine);
      const [program, service] = [
        resolved({ 'file-unix': { path: httpApi.path, content: httpApi.program } }),
        resolved({ 'service-systemd': { name: 'api', exec_start: `${httpApi.command} 3000`, running: true } }),
      ];
      const user = (fields: Declared['http-object']) => ({
        ...resolved({
          'http-object': {
            url: 'http://127.0.0.1:8640/users/ada',
            read_at: '/users/0',
            create_method: 'POST',
            create_url: 'http://127.0.0.1:8640/users',
            username: 'admin',
            password: 'example',
            write_only: ['password'],
            body: { name: 'ada', password: 'first' },
            ...fields,
          },
        }),
        depends_on: [service.key],
      });
      const alone = await agent.run(operation('plan', [{ ...user({}), depends_on: [] }]));
      expect(alone.results).toMatchObject([{ status: 'failed', message: expect.stringContaining('ECONNREFUSED') }]);
      const resources = [program, service, user({})];
      const planned = await agent.run(operation('plan', resources));
      expect(planned.results.map(({ status }) => status)).toEqual(['would_change', 'would_change', 'would_change']);
      expect(planned.results[2]?.message).toContain(
        'will be available after `it`; now GET http://127.0.0.1:8640/users/ada: ',
      );
      const applied = await agent.run(operation('apply', resources));
      expect(applied.results.map(({ status, message }) => [status, message])).toEqual([
        ['changed', null],
        ['changed', null],
        ['changed', null],
      ]);
      const state = async () => JSON.parse(await machine.sh(httpApiState)) as unknown;
      expect(await state()).toMatchObject({ users: { ada: { name: 'ada', password: 'first' } } });
      expect((await agent.run(operation('apply', resources))).results[2]).toMatchObject({ status: 'unchanged' });
      const other = user({ body: { name: 'ada', password: 'second' } });
      const changed = await agent.run(operation('apply', [program, service, other]));
      expect(changed.results[2]).toMatchObject({
        changes: [{ field: 'write_only', from: null, to: '/password' }],
        status: 'changed',
      });
      expect(JSON.stringify(changed)).not.toMatch(/first|second/);
      expect(await state()).toMatchObject({ users: { ada: { password: 'second' } } });
      const wrong = await agent.run(operation('apply', [program, service, user({ password: 'wrong' })]));
      expect(wrong.results[2]).toMatchObject({
        status: 'failed',
        message: 'GET http://127.0.0.1:8640/users/ada: the server does not accept the credentials (401)',
      });
      await agent.run(operation('apply', [program, service]));
      expect(await state()).toEqual({ users: { ada: { name: 'ada', password: 'second' } }, texts: {} });
    } finally {
      await hosts.end();
    }
  });

  test('applies and removes the example in the documentation', async () => {
    const hosts = await TestHosts.open();
    try {
      const machine = await hosts.start('http-example');
      await machine.sh(httpApiUp);
      const agent = await DrivenAgent.start(machine);
      const example = resolved({ 'http-object': parse(kinds['http-object'].example) });
      const state = async () => JSON.parse(await machine.sh(httpApiState)) as unknown;
      for (const status of ['changed', 'unchanged'])
        expect((await agent.run(operation('apply', [example]))).results).toMatchObject([{ status, message: null }]);
      expect(await state()).toEqual({
        users: { ada: { name: 'ada', tags: ['monitoring'], password: 'example' } },
        texts: {},
      });
      expect((await agent.run(operation('apply', []))).results).toMatchObject([{ status: 'changed' }]);
      expect(await state()).toEqual({ users: {}, texts: {} });
    } finally {
      await hosts.end();
    }
  });

  test('the idioms of the documentation are planned as they are applied, and removed', async () => {
    const hosts = await TestHosts.open();
    try {
      const machine = await hosts.start('idiom-apis');
      await machine.sh(productsUp);
      const agent = await DrivenAgent.start(machine);
      const before = await machine.sh(productsState);
      const replacements = {
        '"${{ secrets.grafana_admin }}"': productSecrets.basic,
        '"${{ secrets.rabbitmq_admin }}"': productSecrets.basic,
        '${{ secrets.keycloak_token }}': productSecrets.token,
        '${{ secrets.metrics_password }}': 'metrics',
        '${{ secrets.shop_password }}': 'shop',
      };
      await expectModuleApplied(agent, 'idiom-apis', { replacements });
      expect(await machine.sh(productsState)).toBe(before);
    } finally {
      await hosts.end();
    }
  });
});
